// Threads that wait for work: a job is cut into ranges that do not depend on how many threads there are.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gossamer {

class Threads {
public:
    explicit Threads(int count) : count_(count < 1 ? 1 : count) {
        for (int k = 1; k < count_; ++k) workers_.emplace_back([this, k] { wait(k); });
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            ending_ = true;
        }
        start_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }
    int count() const { return count_; }

    // job(begin, end, thread) over [0, size), every thread one range
    void run(int size, const std::function<void(int, int, int)>& job) {
        if (count_ == 1 || size < 2) {
            job(0, size, 0);
            return;
        }
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = &job;
            size_ = size;
            left_ = count_ - 1;
            ++round_;
        }
        start_.notify_all();
        part(0);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
    }

private:
    void part(int k) {
        const long long size = size_;
        (*job_)(static_cast<int>(size * k / count_), static_cast<int>(size * (k + 1) / count_), k);
    }
    void wait(int k) {
        long long seen = 0;
        for (;;) {
            {
                std::unique_lock<std::mutex> lock(mutex_);
                start_.wait(lock, [&] { return ending_ || round_ != seen; });
                if (ending_) return;
                seen = round_;
            }
            part(k);
            {
                std::lock_guard<std::mutex> lock(mutex_);
                --left_;
            }
            done_.notify_one();
        }
    }

    int count_;
    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable start_, done_;
    const std::function<void(int, int, int)>* job_ = nullptr;
    int size_ = 0, left_ = 0;
    long long round_ = 0;
    bool ending_ = false;
};

}  // namespace gossamer
