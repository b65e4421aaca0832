// Rows and support points of which only the non-zeros are kept, in the order of their columns (CSR).
//
// A product over the non-zeros of a row, from first to last, has the bits of the product over all features: what is left out
// would add 0 to the sum. So sparse rows give the same scores as dense ones, and the law of batches holds for both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simd/tiles.hpp"

namespace gossamer {

using Column = std::int32_t;

// One row: its non-zeros.
template <class T> struct SparseRow {
    const Column* columns;
    const T* values;
    int count;
};

// Rows that somebody else keeps: row i has the places starts[i] to starts[i + 1].
template <class T> struct SparseBatch {
    const std::int64_t* starts;
    const Column* columns;
    const T* values;

    SparseRow<T> row(std::int64_t i) const {
        return {columns + starts[i], values + starts[i], static_cast<int>(starts[i + 1] - starts[i])};
    }
};

// Rows of its own.
template <class T> struct SparseMatrix {
    std::vector<std::int64_t> starts{0};
    std::vector<Column> columns;
    std::vector<T> values;

    int rows() const { return static_cast<int>(starts.size()) - 1; }
    SparseBatch<T> batch() const { return {starts.data(), columns.data(), values.data()}; }
    void add(Column column, T value) {
        columns.push_back(column);
        values.push_back(value);
    }
    void end_row() { starts.push_back(static_cast<std::int64_t>(columns.size())); }
    void clear() {
        starts.resize(1);
        columns.clear();
        values.clear();
    }
    bool operator==(const SparseMatrix& other) const {
        return starts == other.starts && columns == other.columns && values == other.values;
    }
};

// Support points with their squared norms, and an index by column, so that a product visits only what two rows share.
template <class T> class SparsePoints {
public:
    static constexpr int width = panel_width<T>;
    explicit SparsePoints(int) {}

    int size() const { return static_cast<int>(points_.size()); }
    int padded() const { return (size() + width - 1) / width * width; }
    const T* norms() const { return norms_.data(); }  // with room up to padded()

    SparseRow<T> row(int slot) const {
        const Point& p = points_[slot];
        return {p.columns.data(), p.values.data(), static_cast<int>(p.columns.size())};
    }

    // the points that have this column, null if none has it
    const std::vector<Posting<T>>* find(Column column) const {
        const auto found = index_.find(column);
        return found == index_.end() ? nullptr : &found->second;
    }

    // the first row of a batch
    void set(int slot, const SparseBatch<T>& batch, T norm) {
        if (slot == size()) {
            points_.emplace_back();
            if (static_cast<std::size_t>(padded()) > norms_.size()) norms_.resize(padded());
        } else {
            forget(slot);
        }
        const SparseRow<T> x = batch.row(0);
        Point& p = points_[slot];
        p.columns.clear();
        p.values.clear();
        for (int k = 0; k < x.count; ++k) {
            if (x.values[k] == 0) continue;
            p.columns.push_back(x.columns[k]);
            p.values.push_back(x.values[k]);
            index_[x.columns[k]].push_back({slot, x.values[k]});
        }
        norms_[slot] = norm;
    }

    // a point as one more row of a matrix
    void read(int slot, SparseMatrix<T>& to) const {
        const SparseRow<T> x = row(slot);
        for (int k = 0; k < x.count; ++k) to.add(x.columns[k], x.values[k]);
        to.end_row();
    }

    SparseMatrix<T> rows() const {
        SparseMatrix<T> all;
        for (int j = 0; j < size(); ++j) read(j, all);
        return all;
    }

    // h of a point and 1 - h of another
    SparseMatrix<T> blend(int slot, int other, double h) const {
        const SparseRow<T> a = row(slot), b = row(other);
        SparseMatrix<T> z;
        for (int i = 0, j = 0; i < a.count || j < b.count;) {
            const Column column =
                j == b.count || (i < a.count && a.columns[i] <= b.columns[j]) ? a.columns[i] : b.columns[j];
            const T x = i < a.count && a.columns[i] == column ? a.values[i++] : T(0);
            const T y = j < b.count && b.columns[j] == column ? b.values[j++] : T(0);
            z.add(column, static_cast<T>(h * x + (1 - h) * y));
        }
        z.end_row();
        return z;
    }

    void clear() {
        points_.clear();
        index_.clear();
    }

    void append(const SparseMatrix<T>& x) {
        for (int i = 0; i < x.rows(); ++i) {
            const SparseBatch<T> rest{x.starts.data() + i, x.columns.data(), x.values.data()};
            const SparseRow<T> row = rest.row(0);
            set(size(), rest, tiles<T>().norm(row.values, row.count));
        }
    }

    // the last point takes the slot of one that left
    void move_last(int slot) {
        const int last = size() - 1;
        forget(slot);
        if (slot != last) {
            for (Column column : points_[last].columns)
                for (Posting<T>& posting : index_.find(column)->second)
                    if (posting.slot == last) posting.slot = slot;
            points_[slot] = std::move(points_[last]);
            norms_[slot] = norms_[last];
        }
        points_.pop_back();
    }

private:
    struct Point {
        std::vector<Column> columns;
        std::vector<T> values;
    };

    // take a point out of the index
    void forget(int slot) {
        for (Column column : points_[slot].columns) {
            const auto found = index_.find(column);
            std::vector<Posting<T>>& postings = found->second;
            for (Posting<T>& posting : postings)
                if (posting.slot == slot) {
                    posting = postings.back();
                    postings.pop_back();
                    break;
                }
            if (postings.empty()) index_.erase(found);
        }
    }

    std::vector<Point> points_;
    std::vector<T> norms_;
    std::unordered_map<Column, std::vector<Posting<T>>> index_;
};

}  // namespace gossamer
