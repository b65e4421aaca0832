// Support points, point j in lane j % width of panel j / width, with their squared norms.
#pragma once
#include <cstddef>
#include <vector>

#include "simd/tiles.hpp"

namespace gossamer {

template <class T> class Points {
public:
    static constexpr int width = panel_width<T>;
    explicit Points(int d) : d_(d) {}

    int size() const { return size_; }
    int padded() const { return (size_ + width - 1) / width * width; }
    const T* data() const { return values_.data(); }
    const T* lane(int slot) const { return values_.data() + at(slot); }  // its features are `width` apart
    const T* norms() const { return norms_.data(); }                     // with room up to padded()

    void set(int slot, const T* x, T norm) {
        if (slot == size_) {
            ++size_;
            if (static_cast<std::size_t>(padded()) > norms_.size()) {
                norms_.resize(padded());
                values_.resize(static_cast<std::size_t>(padded()) * d_);
            }
        }
        T* lane = values_.data() + at(slot);
        for (int k = 0; k < d_; ++k) lane[static_cast<std::ptrdiff_t>(k) * width] = x[k];
        norms_[slot] = norm;
    }

    void get(int slot, T* x) const {
        const T* lane = values_.data() + at(slot);
        for (int k = 0; k < d_; ++k) x[k] = lane[static_cast<std::ptrdiff_t>(k) * width];
    }

    // a point as one more row of a matrix
    void read(int slot, std::vector<T>& to) const {
        to.resize(to.size() + d_);
        get(slot, to.data() + to.size() - d_);
    }

    // h of a point and 1 - h of another
    std::vector<T> blend(int slot, int other, double h) const {
        std::vector<T> z(d_), y(d_);
        get(slot, z.data());
        get(other, y.data());
        for (int k = 0; k < d_; ++k) z[k] = static_cast<T>(h * z[k] + (1 - h) * y[k]);
        return z;
    }

    std::vector<T> rows() const {
        std::vector<T> x(static_cast<std::size_t>(size_) * d_);
        for (int j = 0; j < size_; ++j) get(j, x.data() + static_cast<std::size_t>(j) * d_);
        return x;
    }

    void clear() { size_ = 0; }

    // rows, row-major, as further points
    void append(const std::vector<T>& x) {
        for (std::size_t i = 0; i + d_ <= x.size(); i += d_)
            set(size_, x.data() + i, tiles<T>().norm(x.data() + i, d_));
    }

    // the last point takes the slot of one that left
    void move_last(int slot) {
        const int last = --size_;
        T *to = values_.data() + at(slot), *from = values_.data() + at(last);
        for (std::ptrdiff_t k = 0; k < static_cast<std::ptrdiff_t>(d_) * width; k += width) to[k] = from[k];
        norms_[slot] = norms_[last];
    }

private:
    std::ptrdiff_t at(int slot) const { return static_cast<std::ptrdiff_t>(slot / width) * d_ * width + slot % width; }

    int d_;
    int size_ = 0;
    std::vector<T> values_, norms_;
};

}  // namespace gossamer
