// A readers-writer lock for an object that several threads use.
//
// The classes of the core take no locks themselves. The caller holds the gate of the object: shared for const methods,
// exclusive for the others. No Python object is made and no callback runs while a gate is held (border.hpp).
#pragma once
#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace gossamer {

// With std::shared_mutex, readers may starve a waiting writer. Here no thread overtakes a thread that came before it.
class Gate {
public:
    Gate() = default;
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    void lock() {
        waiting_.fetch_add(1);
        {
            std::lock_guard<std::mutex> next(turn_);
            mutex_.lock();
        }
        waiting_.fetch_sub(1);
    }
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() { mutex_.unlock(); }

    void lock_shared() {
        std::lock_guard<std::mutex> next(turn_);
        mutex_.lock_shared();
    }
    bool try_lock_shared() { return waiting_.load(std::memory_order_relaxed) == 0 && mutex_.try_lock_shared(); }
    void unlock_shared() { mutex_.unlock_shared(); }

private:
    std::shared_mutex mutex_;
    std::mutex turn_;              // who waits, waits here for those before it
    std::atomic<int> waiting_{0};  // to change something
};

}  // namespace gossamer
