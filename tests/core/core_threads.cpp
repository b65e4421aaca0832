// The core from many threads, without Python: objects whose gate is held as border.hpp holds it. Built with
// ThreadSanitizer; the seconds for each kind of object are the argument.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "trees/additive.hpp"
#include "bank/bank.hpp"
#include "features/finite.hpp"
#include "engine/learner.hpp"
#include "engine/saved.hpp"
#include "engine/threads.hpp"
#include "video/video.hpp"

using namespace gossamer;

namespace {

constexpr int features = 5, rows = 600, workers = 8;
int failures = 0;
double seconds = 1;

void expect(bool good, const std::string& what) {
    if (good) return;
    ++failures;
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

Loop make_loop(const std::string& loss, const Numbers& numbers, int budget) {
    return Loop(make_loss(loss, numbers), make_rule("implicit", {1.0, 0, 0, 0.5, 0.01, 0}),
                make_budget("smallest", {double(budget), 0}), Average::all, true, 1e-15);
}

// work(thread, random) in many threads until the time is over
void storm(const std::function<void(int, std::mt19937&)>& work) {
    std::vector<std::thread> threads;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (int k = 0; k < workers; ++k)
        threads.emplace_back([&, k] {
            std::mt19937 random(k);
            while (std::chrono::steady_clock::now() < end) work(k, random);
        });
    for (std::thread& thread : threads) thread.join();
}

// a lock as the border takes it: try first, then wait
template <class Lock, class L, class Work> void hold(L& self, Work&& work) {
    {
        Lock lock(self.gate, std::try_to_lock);
        if (lock.owns_lock()) return work();
    }
    Lock lock(self.gate);
    work();
}

struct Data {
    std::vector<double> x = std::vector<double>(rows * features), y = std::vector<double>(rows);
    Data() {
        std::mt19937 random(1);
        std::normal_distribution<double> normal;
        for (double& value : x) value = normal(random);
        for (int t = 0; t < rows; ++t) y[t] = x[t * features] > 0 ? 1.0 : -1.0;
    }
};

template <class L> void test_learner(const std::string& name, L& learner) {
    const Data data;
    std::atomic<long long> learned{0};
    storm([&](int, std::mt19937& random) {
        const int first = static_cast<int>(random() % (rows - 64)), n = random() % 3 == 0 ? 1 : 64;
        std::vector<double> scores(64), levels(64);
        const double* x = data.x.data() + first * features;
        switch (random() % 4) {
            case 0:
                hold<std::unique_lock<Gate>>(learner, [&] {
                    Block<double> block;
                    block.y = data.y.data() + first;
                    block.scores = scores.data();
                    block.columns = 1;
                    block.levels = levels.data();
                    learner.learn(x, n, block);
                });
                learned += n;
                break;
            case 1: hold<std::shared_lock<Gate>>(learner, [&] { learner.score(x, n, scores.data(), 1); }); break;
            case 2: hold<std::shared_lock<Gate>>(learner, [&] { learner.score_mean(x, n, scores.data(), 1); }); break;
            default:
                Saved saved;
                std::vector<double> points;
                hold<std::shared_lock<Gate>>(
                    learner, [&] { saved = Saved::of(learner.loop()), points = learner.points().rows(); });
                if (points.size() < saved.births.size()) throw std::logic_error("a state of two moments");
        }
        for (const double score : scores)
            if (!std::isfinite(score)) throw std::logic_error("a score that is not finite");
    });
    expect(learner.loop().steps == learned, name + ": each row is learned once");
    std::printf("%s: %lld rows\n", name.c_str(), learned.load());
}

void test_bank() {
    Config config{{{"gaussian", {0.5}}},
                  Loop(make_loss("squared", {}), make_rule("implicit", {1.0, 0, 0, 0.5, 0.01, 0}),
                       make_budget("smallest", {9.0, 0}), Average::none, false, 1e-15),
                  std::nullopt};
    config.features = features;
    Bank<double> bank(std::move(config));
    const Data data;
    constexpr int keys = 6;
    std::vector<std::string> states(keys);
    std::mutex of_states;
    std::atomic<long long> calls{0};
    storm([&](int, std::mt19937& random) {
        std::vector<std::int64_t> order, starts = {0};
        for (int k = 0; k < keys; ++k) {
            for (int t = k; t < 60; t += keys) order.push_back(t);
            starts.push_back(static_cast<std::int64_t>(order.size()));
        }
        std::vector<double> out(rows);
        std::vector<std::uint8_t> refused(rows);
        Call<double> call;
        call.x = data.x.data(), call.y = data.y.data(), call.rows = order.data(), call.starts = starts.data();
        call.out = out.data(), call.refused = refused.data();
        std::vector<std::string> before, after(keys);
        {
            std::lock_guard<std::mutex> lock(of_states);
            before = states;
        }
        const bool learns = random() % 2 == 0;
        hold<std::unique_lock<Gate>>(bank, [&] {
            bank.each(keys, 3, [&](Workspace<double>& workspace, std::int64_t k) {
                const char* bytes = before[k].empty() ? nullptr : before[k].data();
                if (learns)
                    after[k] = workspace.learn(bytes, before[k].size(), k, call);
                else if (bytes != nullptr)
                    workspace.check(bytes, before[k].size());
            });
        });
        if (learns) {
            std::lock_guard<std::mutex> lock(of_states);
            states = after;
        }
        ++calls;
    });
    std::printf("bank: %lld calls\n", calls.load());
}

void test_video() {
    VideoOptions o;
    o.budget = 4, o.keep = 0.9, o.step = 0.3, o.merge = 8, o.cap = 0.9, o.known = 0.75, o.haste = 5, o.spread = 2,
    o.widest = 40;
    o.every = 3, o.chroma = o.warm = o.light = o.shadows = true, o.guard = 0.5, o.radius = 2;
    constexpr int height = 21, width = 33;
    PixelBank bank(height, width, 3, o, 3);
    std::atomic<long long> frames{0};
    storm([&](int, std::mt19937& random) {
        std::vector<std::uint8_t> frame(height * width * 3), mask(height * width), image(frame.size());
        std::vector<float> scores(height * width);
        for (auto& value : frame) value = static_cast<std::uint8_t>(60 + random() % 40);
        switch (random() % 3) {
            case 0:
                hold<std::unique_lock<Gate>>(bank, [&] { bank.apply(frame.data(), width * 3, -1, mask.data()); });
                ++frames;
                break;
            case 1:
                hold<std::unique_lock<Gate>>(bank, [&] { bank.score(frame.data(), width * 3, scores.data()); });
                break;
            default: hold<std::shared_lock<Gate>>(bank, [&] { bank.background(image.data()); });
        }
    });
    expect(bank.frames == frames, "each frame is learned once");
    std::printf("video: %lld frames\n", frames.load());
}

// who waits to change something gets in, although others look all the time
void test_gate() {
    Gate gate;
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (int k = 0; k < workers; ++k)
        readers.emplace_back([&] {
            while (!done) {
                std::shared_lock<Gate> lock(gate);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) std::unique_lock<Gate> lock(gate);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    done = true;
    for (std::thread& reader : readers) reader.join();
    expect(took.count() < 10, "a change waits for those before it, not for those after it");
}

void test_threads() {
    bool thrown = false;
    Threads pool(3);
    try {
        pool.run(3, [](int begin, int, int) {
            if (begin > 0) throw std::runtime_error("a part fails");
        });
    } catch (const std::runtime_error&) {
        thrown = true;
    }
    expect(thrown, "what a thread throws comes out of run");
    std::atomic<int> sum{0};
    pool.run(10, [&](int begin, int end, int) {
        for (int i = begin; i < end; ++i) sum += i;
    });
    expect(sum == 45, "threads work on after a part has failed");
    thrown = false;
    try {
        Threads many(1 << 30);
    } catch (const std::invalid_argument&) {
        thrown = true;
    }
    expect(thrown, "too many threads are refused before one is made");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) seconds = std::atof(argv[1]);
    test_gate();
    test_threads();
    Learner<double> dense(Kernel({{"gaussian", {0.5}}}, features), make_loop("hinge", {1.0}, 30), features);
    test_learner("learner", dense);
    const Numbers coordinates = {0, 0, 0, 2, 0, 1, 0.5, 2.0, 1.0, 1.0, 2, 1, 0.3, 1.0};
    Additive<double> trees(read_coordinates(coordinates, features), make_loop("hinge", {1.0}, 30), features);
    test_learner("trees", trees);
    Finite<double> finite(Kernel({{"gaussian", {0.5}}}, features), make_loop("hinge", {1.0}, 30), features, 20, 1e-3,
                          {});
    test_learner("finite space", finite);
    test_bank();
    test_video();
    std::printf("%d failures\n", failures);
    return failures != 0;
}
