// One coordinate of an additive expansion: a search tree over its keys whose nodes know the moments of their coefficients
// (onedim.hpp), so that f is read, and a term added or removed, in O(log m).
//
// Wide nodes in pools, not one allocation per key: a leaf has up to 32 keys, a node up to 16 children whose ends and
// moments stand side by side in it. A change recomputes the moments on its path from the level below, never by adding to
// them: they are a function of the keys, coefficients and shape alone, and rounding cannot accumulate.
//
// The file is long because reading, insertion, removal and rebuilding share the layout of the nodes, which no other file knows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "trees/onedim.hpp"
#include "trees/pool.hpp"
#include "trees/tree_shape.hpp"

namespace gossamer {

// A key of a coordinate: terms with the same number are told apart by their births.
struct Key {
    double x;
    std::int64_t birth;
    bool operator<(const Key& other) const { return x < other.x || (x == other.x && birth < other.birth); }
};

class Tree {
public:
    // rows: coefficient rows, one per output (and one more for each where there is a trace)
    Tree(std::vector<Term> terms, int rows) : terms_(std::move(terms)), rows_(rows), leaves_(0), nodes_(0) {
        for (Term& term : terms_) {
            term.left = used_;
            used_ += term.left_count();
        }
        for (Term& term : terms_) {
            term.right = used_;
            used_ += term.right_count();
        }
        moments_ = used_;
        for (Term& term : terms_) {
            term.total = moments_;
            moments_ += term.kind == Term::Kind::power;
        }
        clear();
    }

    // out[r] += f_r(x); scratch has room for scratch_size()
    void add(double x, double* scratch, double* out) const {
        const OneDim& ops = onedim();
        const int count = static_cast<int>(terms_.size());
        int at = root_;
        for (int level = height_; level > 0; --level) {
            const Node& node = nodes_[at];
            const int c = first_reaching(node, x);
            ops.read(terms_.data(), count, x, node.lo, node.hi, c, node.count, moments(node), used_, moments_, rows_,
                     scratch, out);
            at = node.child[c];
        }
        const Leaf& leaf = leaves_[at];
        ops.leaf(terms_.data(), count, x, leaf.keys, leaf.count, coefs(leaf), rows_, out);
        for (const Term& term : terms_)
            if (term.kind == Term::Kind::power) {
                const double at_x = term.coefs[0] * power_of(x, term.order);
                for (int r = 0; r < rows_; ++r) out[r] += at_x * top_[r * (moments_ - used_) + term.total - used_];
            }
    }
    // Prefetch the path to x: the walks down several trees are interleaved, so that their cache misses overlap.
    struct Walk {
        int at, level;
    };
    Walk walk() const { return {root_, height_}; }
    void step(double x, Walk& walk) const {
        if (walk.level == 0) return;
        const Node& node = nodes_[walk.at];
        walk.at = node.child[first_reaching(node, x)];
        if (--walk.level > 0)
            fetch(&nodes_[walk.at], sizeof(Node) + static_cast<std::size_t>(moments_) * fan * sizeof(double));
        else
            fetch(&leaves_[walk.at], sizeof(Leaf) + leaf_size * sizeof(double));
    }
    int height() const { return height_; }

    std::size_t scratch_size() const { return static_cast<std::size_t>(std::max(used_, largest_order + 1)) * fan; }

    // coefs[r]: the raw coefficient in row r. The birth is later than any in the tree.
    void insert(Key key, const double* coefs) {
        leaves_.reserve(1);
        nodes_.reserve(height_ + 2);
        Path path;
        int at = root_;
        for (int level = height_; level > 0; --level) {
            const Node& node = nodes_[at];
            path.push(at, last_at(node, key.x));
            at = node.child[path.slot()];
        }
        int fresh = -1;  // a new right neighbour of the node that was just changed
        if (leaves_[at].count == leaf_size) fresh = split_leaf(at, key, path.at_end(nodes_));
        const bool right = fresh >= 0 && (leaves_[fresh].count == 0 || !(key < first(leaves_[fresh])));
        put(leaves_[right ? fresh : at], key, coefs);
        for (int level = 1; level <= height_; ++level) {
            int node = path.node();
            const int slot = path.slot();
            refresh(nodes_[node], slot, level - 1);
            const bool at_end = path.at_end(nodes_);
            path.pop();
            if (fresh < 0) continue;
            int split = -1, to = slot + 1;
            if (nodes_[node].count == fan) {
                split = split_node(node, at_end && slot + 1 == fan);
                if (to > nodes_[node].count || nodes_[split].count == 0) {
                    to -= nodes_[node].count;
                    node = split;
                }
            }
            open_lane(nodes_[node], to);
            nodes_[node].child[to] = fresh;
            refresh(nodes_[node], to, level - 1);
            fresh = split;
        }
        if (fresh >= 0) {
            const int root = nodes_.take();
            Node& node = nodes_[root];
            node.count = 2;
            node.child[0] = root_;
            node.child[1] = fresh;
            for (int slot = 0; slot < 2; ++slot) refresh(node, slot, height_);
            root_ = root;
            ++height_;
        }
        refresh_top();
    }

    void erase(Key key) {
        Path path;
        const int at = find(key, path);
        const int entry = position(leaves_[at], key);
        if (entry == leaves_[at].count) return;
        leaves_.reserve(1);
        take_out(leaves_[at], entry);
        for (int level = 1; level <= height_; ++level) {
            Node& node = nodes_[path.node()];
            settle(node, path.slot(), level - 1);
            path.pop();
        }
        while (height_ > 0 && nodes_[root_].count <= 1) {
            const bool none = nodes_[root_].count == 0;
            const int child = nodes_[root_].child[0];
            nodes_.give_back(root_);
            --height_;
            root_ = child;
            if (none) {
                height_ = 0;
                root_ = leaves_.take();
            }
        }
        refresh_top();
    }

    void change(Key key, const double* coefs) {
        Path path;
        Leaf& leaf = leaves_[find(key, path)];
        const int entry = position(leaf, key);
        if (entry == leaf.count) return;
        for (int r = 0; r < rows_; ++r) this->coefs(leaf)[r * leaf_size + entry] = coefs[r];
        for (int level = 1; level <= height_; ++level, path.pop()) refresh(nodes_[path.node()], path.slot(), level - 1);
        refresh_top();
    }

    // the coefficients of the rows [from, to) times a factor; 0 clears them, whatever they are
    void scale(int from, int to, double factor) {
        each_leaf([&](Leaf& leaf) {
            double *a = coefs(leaf) + from * leaf_size, *end = coefs(leaf) + to * leaf_size;
            for (; a < end; ++a) *a = factor == 0 ? 0 : *a * factor;
        });
        refresh_all();
    }

    // The numbers of entries of the leaves in order, then of the children of each level's nodes, with their counts before.
    std::vector<std::int64_t> shape() const {
        std::vector<std::int64_t> sizes{height_};
        std::vector<int> level{root_};
        Counts counts;
        for (int h = height_; h >= 0; --h) {
            std::vector<int> below;
            counts.emplace_back();
            for (int at : level) {
                counts.back().push_back(h > 0 ? nodes_[at].count : leaves_[at].count);
                for (int i = 0; h > 0 && i < nodes_[at].count; ++i) below.push_back(nodes_[at].child[i]);
            }
            level = std::move(below);
        }
        for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
            sizes.push_back(static_cast<std::int64_t>(it->size()));
            sizes.insert(sizes.end(), it->begin(), it->end());
        }
        return sizes;
    }

    // Terms in any order, in a given shape (from shape()), or in one as full as can be; returns whether the shape fits.
    // coefs[i * rows + r] belongs to keys[i].
    bool build(const std::vector<Key>& keys, const std::vector<double>& coefs, int rows,
               const std::vector<std::int64_t>* shape = nullptr) {
        Counts counts;
        if (shape == nullptr)
            counts = full_shape(static_cast<std::int64_t>(keys.size()));
        else if (!read_shape(*shape, static_cast<std::int64_t>(keys.size()), counts))
            return false;
        std::vector<std::size_t> order(keys.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
        rows_ = rows;
        clear();
        std::vector<int> level;
        std::size_t next = 0;
        for (std::int64_t count : counts[0]) {
            leaves_.reserve(1);
            const int at = level.empty() ? root_ : leaves_.take();
            Leaf& leaf = leaves_[at];
            for (; count > 0; --count, ++next, ++leaf.count) {
                const std::size_t i = order[next];
                leaf.keys[leaf.count] = keys[i].x;
                leaf.births[leaf.count] = keys[i].birth;
                for (int r = 0; r < rows_; ++r) this->coefs(leaf)[r * leaf_size + leaf.count] = coefs[i * rows_ + r];
            }
            level.push_back(at);
        }
        for (height_ = 1; height_ < static_cast<int>(counts.size()); ++height_) {
            std::vector<int> above;
            next = 0;
            for (std::int64_t count : counts[height_]) {
                nodes_.reserve(1);
                above.push_back(nodes_.take());
                Node& node = nodes_[above.back()];
                for (; count > 0; --count, ++next) {
                    node.child[node.count] = level[next];
                    refresh(node, node.count++, height_ - 1);
                }
            }
            level = std::move(above);
        }
        --height_;
        root_ = level[0];
        refresh_top();
        return true;
    }

    // every term, in the order of the keys
    template <class F> void each(F&& f) const {
        each_leaf([&](Leaf& leaf) {
            for (int i = 0; i < leaf.count; ++i)
                f(Key{leaf.keys[i], leaf.births[i]}, coefs(leaf) + i);  // stride leaf_size
        });
    }

    // a coefficient row of zeros more, at `row`
    void grow(int row) {
        std::vector<Key> keys;
        std::vector<double> values;
        each([&](Key key, const double* a) {
            keys.push_back(key);
            for (int r = 0; r <= rows_; ++r) values.push_back(r == row ? 0.0 : a[(r - (r > row)) * leaf_size]);
        });
        const std::vector<std::int64_t> before = shape();
        build(keys, values, rows_ + 1, &before);
    }

    int rows() const { return rows_; }

private:
    struct alignas(64) Leaf {
        int count;
        double keys[leaf_size];
        std::int64_t births[leaf_size];
    };
    struct alignas(64) Node {
        int count;
        int child[fan];
        double lo[fan], hi[fan];
        std::int64_t births[fan];  // of the first key below each child
    };
    struct Path {
        int nodes[32], slots[32], size = 0;
        void push(int node, int slot) {
            nodes[size] = node;
            slots[size++] = slot;
        }
        void pop() { --size; }
        int node() const { return nodes[size - 1]; }
        int slot() const { return slots[size - 1]; }
        // whether it ran along the right edge of the tree
        bool at_end(const Pool<Node>& pool) const {
            for (int i = 0; i < size; ++i)
                if (slots[i] + 1 < pool[nodes[i]].count) return false;
            return true;
        }
    };

    static void fetch(const void* block, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(block) + i, 0, 2);
    }

    double* coefs(const Leaf& leaf) const { return const_cast<double*>(reinterpret_cast<const double*>(&leaf + 1)); }
    double* moments(const Node& node) const { return const_cast<double*>(reinterpret_cast<const double*>(&node + 1)); }
    static Key first(const Leaf& leaf) { return {leaf.keys[0], leaf.births[0]}; }

    // the first child whose keys reach up to x, or the last
    static int first_reaching(const Node& node, double x) {
        int c = 0;
        for (int i = 0; i < node.count - 1; ++i) c += node.hi[i] < x;
        return c;
    }
    // the last child that begins at or before x, or the first
    static int last_at(const Node& node, double x) {
        int c = 0;
        for (int i = 1; i < node.count; ++i) c += node.lo[i] <= x;
        return c;
    }
    // the same for a key
    static int last_before(const Node& node, Key key) {
        int c = 0;
        for (int i = 1; i < node.count; ++i) c += !(key < Key{node.lo[i], node.births[i]});
        return c;
    }
    // the place of a newcomer, whose birth is later than all others
    static int behind(const Leaf& leaf, double x) {
        std::int64_t i = 0;
        for (int k = 0; k < leaf.count; ++k) i += leaf.keys[k] <= x;
        return static_cast<int>(i);
    }
    static int position(const Leaf& leaf, Key key) {
        int i = 0;
        while (i < leaf.count && Key{leaf.keys[i], leaf.births[i]} < key) ++i;
        return i;
    }
    int find(Key key, Path& path) const {
        int at = root_;
        for (int level = height_; level > 0; --level) {
            const Node& node = nodes_[at];
            path.push(at, last_before(node, key));
            at = node.child[path.slot()];
        }
        return at;
    }

    void clear() {
        leaves_ = Pool<Leaf>(static_cast<std::size_t>(rows_) * leaf_size);
        nodes_ = Pool<Node>(static_cast<std::size_t>(rows_) * moments_ * fan);
        leaves_.reserve(1);
        height_ = 0;
        root_ = leaves_.take();
        top_.assign(static_cast<std::size_t>(rows_) * (moments_ - used_), 0.0);
    }

    void put(Leaf& leaf, Key key, const double* values) {
        const int i = behind(leaf, key.x), rest = leaf.count - i;
        std::memmove(leaf.keys + i + 1, leaf.keys + i, rest * sizeof(double));
        std::memmove(leaf.births + i + 1, leaf.births + i, rest * sizeof(std::int64_t));
        leaf.keys[i] = key.x;
        leaf.births[i] = key.birth;
        for (int r = 0; r < rows_; ++r) {
            double* a = coefs(leaf) + r * leaf_size;
            std::memmove(a + i + 1, a + i, rest * sizeof(double));
            a[i] = values[r];
        }
        ++leaf.count;
    }

    void take_out(Leaf& leaf, int i) {
        const int rest = --leaf.count - i;
        std::memmove(leaf.keys + i, leaf.keys + i + 1, rest * sizeof(double));
        std::memmove(leaf.births + i, leaf.births + i + 1, rest * sizeof(std::int64_t));
        for (int r = 0; r < rows_; ++r) {
            double* a = coefs(leaf) + r * leaf_size;
            std::memmove(a + i, a + i + 1, rest * sizeof(double));
            a[leaf.count] = 0;
        }
    }

    // entries [from, from + n) of one leaf to the end of another
    void move_entries(Leaf& source, int from, int n, Leaf& target) {
        std::copy_n(source.keys + from, n, target.keys + target.count);
        std::copy_n(source.births + from, n, target.births + target.count);
        for (int r = 0; r < rows_; ++r) {
            double* a = coefs(source) + r * leaf_size + from;
            std::copy_n(a, n, coefs(target) + r * leaf_size + target.count);
            std::fill_n(a, n, 0.0);
        }
        target.count += n;
        source.count -= n;
    }

    // keys that come in order leave full leaves behind
    int split_leaf(int at, Key key, bool at_end) {
        const int fresh = leaves_.take();
        const bool after = at_end && behind(leaves_[at], key.x) == leaf_size;
        const int kept = after ? leaf_size : leaf_size / 2;
        move_entries(leaves_[at], kept, leaf_size - kept, leaves_[fresh]);
        return fresh;
    }

    // every array of a node that has a number per child
    template <class F> void each_lane(const Node& node, F&& f) const {
        double* m = moments(node);
        for (int k = 0; k < rows_ * moments_; ++k) f(m + k * fan);
    }

    // lanes [from, from + n) of one node to the end of another
    void move_lanes(Node& source, int from, int n, Node& target) {
        std::copy_n(source.child + from, n, target.child + target.count);
        std::copy_n(source.lo + from, n, target.lo + target.count);
        std::copy_n(source.hi + from, n, target.hi + target.count);
        std::copy_n(source.births + from, n, target.births + target.count);
        const double* a = moments(source);
        double* b = moments(target);
        for (int k = 0; k < rows_ * moments_; ++k) std::copy_n(a + k * fan + from, n, b + k * fan + target.count);
        each_lane(source, [&](double* lane) { std::fill_n(lane + from, n, 0.0); });
        target.count += n;
        source.count -= n;
    }

    int split_node(int at, bool after) {
        const int fresh = nodes_.take();
        const int kept = after ? fan : fan / 2;
        move_lanes(nodes_[at], kept, fan - kept, nodes_[fresh]);
        return fresh;
    }

    void open_lane(Node& node, int slot) {
        const int rest = node.count - slot;
        const auto shift = [&](auto* a) { std::memmove(a + slot + 1, a + slot, rest * sizeof(*a)); };
        shift(node.child);
        shift(node.lo);
        shift(node.hi);
        shift(node.births);
        each_lane(node, shift);
        ++node.count;
    }

    void close_lane(Node& node, int slot) {
        const int rest = --node.count - slot;
        const auto shift = [&](auto* a) { std::memmove(a + slot, a + slot + 1, rest * sizeof(*a)); };
        shift(node.child);
        shift(node.lo);
        shift(node.hi);
        shift(node.births);
        each_lane(node, [&](double* lane) {
            shift(lane);
            lane[node.count] = 0;
        });
    }

    int entries(int child, int level) const { return level == 0 ? leaves_[child].count : nodes_[child].count; }

    // after a removal from a child: an empty child is removed, a small one is merged into a neighbour with room
    void settle(Node& node, int slot, int level) {
        const int largest = level == 0 ? leaf_size : fan, count = entries(node.child[slot], level);
        if (count == 0) {
            level == 0 ? leaves_.give_back(node.child[slot]) : nodes_.give_back(node.child[slot]);
            close_lane(node, slot);
            return;
        }
        if (count < largest / 4)
            for (int left : {slot - 1, slot}) {
                if (left < 0 || left + 1 >= node.count) continue;
                const int a = node.child[left], b = node.child[left + 1], n = entries(b, level);
                if (entries(a, level) + n > largest * 3 / 4) continue;
                if (level == 0) {
                    move_entries(leaves_[b], 0, n, leaves_[a]);
                    leaves_.give_back(b);
                } else {
                    move_lanes(nodes_[b], 0, n, nodes_[a]);
                    nodes_.give_back(b);
                }
                close_lane(node, left + 1);
                slot = left;
                break;
            }
        refresh(node, slot, level);
    }

    // ends and moments of a child, from its own children or entries
    void refresh(Node& node, int slot, int level) {
        double* to = moments(node) + slot;
        const int count = static_cast<int>(terms_.size());
        if (level == 0) {
            const Leaf& leaf = leaves_[node.child[slot]];
            node.lo[slot] = leaf.keys[0];
            node.hi[slot] = leaf.keys[leaf.count - 1];
            node.births[slot] = leaf.births[0];
            onedim().gather(terms_.data(), count, node.lo[slot], node.hi[slot], leaf.keys, leaf.count, coefs(leaf),
                            moments_, rows_, to);
        } else {
            const Node& child = nodes_[node.child[slot]];
            node.lo[slot] = child.lo[0];
            node.hi[slot] = child.hi[child.count - 1];
            node.births[slot] = child.births[0];
            powers_.resize(scratch_size());
            onedim().lift(terms_.data(), count, node.lo[slot], node.hi[slot], child.lo, child.hi, child.count,
                          moments(child), moments_, rows_, powers_.data(), to);
        }
    }

    // of the whole tree only the totals are needed
    void refresh_top() {
        for (const Term& term : terms_)
            for (int r = 0; term.kind == Term::Kind::power && r < rows_; ++r) {
                double sum = 0;
                if (height_ == 0) {
                    const Leaf& leaf = leaves_[root_];
                    for (int i = 0; i < leaf.count; ++i)
                        sum += coefs(leaf)[r * leaf_size + i] * power_of(leaf.keys[i], term.order);
                } else {
                    const double* m = moments(nodes_[root_]) + (r * moments_ + term.total) * fan;
                    for (int i = 0; i < nodes_[root_].count; ++i) sum += m[i];
                }
                top_[r * (moments_ - used_) + term.total - used_] = sum;
            }
    }

    template <class F> void each_leaf(F&& f) const {
        const auto visit = [&](const auto& self, int at, int level) -> void {
            if (level == 0) {
                f(leaves_[at]);
                return;
            }
            const Node& node = nodes_[at];
            for (int i = 0; i < node.count; ++i) self(self, node.child[i], level - 1);
        };
        visit(visit, root_, height_);
    }

    void refresh_all() {
        const auto visit = [&](const auto& self, int at, int level) -> void {
            if (level == 0) return;
            Node& node = nodes_[at];
            for (int i = 0; i < node.count; ++i) {
                self(self, node.child[i], level - 1);
                refresh(node, i, level - 1);
            }
        };
        visit(visit, root_, height_);
        refresh_top();
    }

    std::vector<Term> terms_;
    int rows_, used_ = 0, moments_ = 0;  // moments: left and right, all
    Pool<Leaf> leaves_;
    Pool<Node> nodes_;
    int root_ = 0, height_ = 0;
    std::vector<double> top_;  // the totals of the whole tree, [row * totals + total]
    std::vector<double> powers_;
};

}  // namespace gossamer
