// Threads that wait for work: a job is cut into ranges that do not depend on how many threads there are.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace gossamer {

class Threads {
public:
    static constexpr int most = 1024;

    explicit Threads(int count) : count_(count < 1 ? 1 : count) {
        if (count_ > most)
            throw std::invalid_argument("The number of threads must be at most " + std::to_string(most) + ".");
        workers_.reserve(static_cast<std::size_t>(count_ - 1));
        try {
            for (int k = 1; k < count_; ++k) workers_.emplace_back([this, k] { wait(k); });
        } catch (const std::system_error& error) {  // the system has no more: those that wait already are ended
            end();
            throw std::runtime_error("The system could not start " + std::to_string(count_) +
                                     " threads: " + error.what());
        }
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() { end(); }
    int count() const { return count_; }

    // job(begin, end, thread) over [0, size), every thread one range; from one thread at a time. If a part of the job
    // throws, the others are done first, and then that is thrown here.
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
            error_ = nullptr;
            ++round_;
        }
        start_.notify_all();
        part(0, job, size);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

private:
    void part(int k, const std::function<void(int, int, int)>& job, long long size) {
        try {
            job(static_cast<int>(size * k / count_), static_cast<int>(size * (k + 1) / count_), k);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex_);
            error_ = std::current_exception();
        }
    }
    void wait(int k) {
        long long seen = 0;
        for (;;) {
            const std::function<void(int, int, int)>* job;
            int size;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                start_.wait(lock, [&] { return ending_ || round_ != seen; });
                if (ending_) return;
                seen = round_;
                job = job_;
                size = size_;
            }
            part(k, *job, size);
            {
                std::lock_guard<std::mutex> lock(mutex_);
                --left_;
                if (left_ == 0) done_.notify_one();
            }
        }
    }
    void end() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            ending_ = true;
        }
        start_.notify_all();
        for (std::thread& worker : workers_) worker.join();
        workers_.clear();
    }

    int count_;
    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable start_, done_;
    const std::function<void(int, int, int)>* job_ = nullptr;
    int size_ = 0, left_ = 0;
    long long round_ = 0;
    bool ending_ = false;
    std::exception_ptr error_;
};

}  // namespace gossamer
