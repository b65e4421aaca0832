// The first of all slots in some order, kept as a tournament: O(log m) after a change, where a scan would be O(m).
#pragma once
#include <vector>

namespace gossamer {

class Ranking {
public:
    static constexpr int worthwhile = 1024;  // slots from which it beats a scan

    void touch(int slot) {
        if (stale_) return;
        touched_.push_back(slot);
        if (static_cast<int>(touched_.size()) > leaves_) touch_all();  // no longer in use
    }
    void touch_all() {
        stale_ = true;
        touched_.clear();
    }

    // before(i, j): whether slot i comes before slot j; a total order
    template <class Before> int first(int size, Before&& before) {
        if (stale_ || size > leaves_) {
            leaves_ = 1;
            while (leaves_ < size) leaves_ *= 2;
            winners_.assign(2 * static_cast<std::size_t>(leaves_), none);
            for (int i = 0; i < size; ++i) winners_[leaves_ + i] = i;
            for (int i = leaves_ - 1; i > 0; --i) play(i, size, before);
            stale_ = false;
        } else {
            for (int slot : touched_) {
                if (slot >= leaves_) continue;
                winners_[leaves_ + slot] = slot < size ? slot : none;
                for (int i = (leaves_ + slot) / 2; i > 0; i /= 2) play(i, size, before);
            }
        }
        touched_.clear();
        return winners_[1];
    }

private:
    static constexpr int none = -1;

    // a winner from before that is no slot any more has lost: its own turn is still to come
    template <class Before> void play(int i, int size, Before& before) {
        const int a = winners_[2 * i], b = winners_[2 * i + 1];
        const bool no_a = a == none || a >= size, no_b = b == none || b >= size;
        winners_[i] = no_a ? (no_b ? none : b) : no_b || before(a, b) ? a : b;
    }

    bool stale_ = true;  // everything has changed since the last query: touches need not be recorded
    int leaves_ = 0;
    std::vector<int> winners_, touched_;
};

}  // namespace gossamer
