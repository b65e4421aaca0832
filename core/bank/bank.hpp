// Many models with the same configuration. Between calls a model is a string of bytes; while its rows are learned it is
// deserialized into the workspace of a thread, whose buffers all models share.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bank/bank_state.hpp"
#include "engine/gate.hpp"
#include "engine/scaler.hpp"
#include "engine/targets.hpp"
#include "engine/threads.hpp"

namespace gossamer {

// The error of a row.
enum class Refused : std::uint8_t { no, row, label, target };

// The rows of a call: those of model k are rows[starts[k]] ... of x.
template <class T> struct Call {
    const T* x = nullptr;  // (all rows, features)
    const std::int64_t *rows = nullptr, *starts = nullptr;
    const double* y = nullptr;            // targets, or numbers of labels
    const double* weights = nullptr;      // may be null: all 1
    const std::int32_t* ranks = nullptr;  // the column of each label
    std::size_t labels = 0;
    const double* gammas = nullptr;   // of new models, if each has its own
    double* out = nullptr;            // (all rows, columns)
    int columns = 0;                  // 0: one score per row
    std::uint8_t* refused = nullptr;  // (all rows)
    std::int64_t* winners = nullptr;  // of a prediction: the number of the label
};

// A workspace: deserializes a model, updates it, serializes it.
template <class T> class Workspace {
public:
    explicit Workspace(const Config& config) : config_(config), model_(config) {}

    // Learns the rows of model k; returns its bytes, empty if there was nothing to learn.
    const std::string& learn(const char* state, std::size_t size, std::int64_t k, const Call<T>& call) {
        model_.begin(state, size, call.labels, Purpose::teach);
        if (state == nullptr && call.gammas != nullptr) model_.use(call.gammas[k]);
        bool learned = false;
        const std::int64_t end = call.starts[k + 1];
        for (std::int64_t first = call.starts[k]; first < end; first += at_once) {
            const int count = take(call, first, std::min(end, first + at_once));
            learned = learned || count > 0;
            int split = 0;  // up to the first row of a third class
            while (!model_.is_many && split < count && !(config_.labels && targets_[split] > 1)) ++split;
            if (split > 0) teach_two(split, call);
            if (split < count && !model_.is_many) model_.widen();
            if (split < count) teach_many(split, count, call);
        }
        out_.bytes.clear();
        if (learned) model_.write(out_);
        return out_.bytes;
    }

    void score(const char* state, std::size_t size, std::int64_t k, const Call<T>& call) {
        model_.begin(state, size, call.labels, Purpose::ask);
        Learner<T>& learner = model_.active();
        const int outputs = model_.is_many ? learner.outputs() : 1;
        const std::int64_t end = call.starts[k + 1];
        for (std::int64_t first = call.starts[k]; first < end; first += at_once) {
            const int count = transform(call, first, std::min(end, first + at_once));
            scores_.resize(static_cast<std::size_t>(count) * outputs);
            learner.score(z_.data(), count, scores_.data(), outputs);
            for (int t = 0; t < count; ++t) {
                const double* f = scores_.data() + static_cast<std::ptrdiff_t>(t) * outputs;
                if (model_.is_many)
                    emit_many(f, outputs, places_[t], call);
                else if (config_.labels)
                    emit_two(*f, static_cast<int>(model_.order.size()), places_[t], call);
                else
                    call.out[places_[t]] = config_.detects   ? *f - learner.loop().level()
                                           : config_.targets ? *f * model_.targets.deviation() + model_.targets.mean()
                                                             : *f;
                if (config_.labels) call.winners[places_[t]] = model_.order[winner(f, call.ranks)];
            }
        }
    }

    // whether bytes from outside are those of a model
    void check(const char* state, std::size_t size) { model_.read(state, size, Purpose::ask); }

private:
    static constexpr std::int64_t at_once = 2048;  // rows of a model per block

    const Config& config_;
    Model<T> model_;
    Values before_, scores_, levels_, targets_, weights_;
    Values chances_;             // of the classes of a row
    Values means_, deviations_;  // of the targets, as known before each row
    std::vector<std::int64_t> places_;
    std::vector<int> known_;  // labels known before each row
    std::vector<T> z_;
    Writer out_;

    void room(std::size_t rows) {
        z_.resize(rows * config_.features);
        targets_.resize(rows);
        weights_.resize(rows);
        places_.resize(rows);
        known_.resize(rows);
        if (config_.targets) means_.resize(rows);
        if (config_.targets) deviations_.resize(rows);
    }

    // Scale and validate some rows; returns the number to be learned. They are in z_, targets_, places_ and known_.
    int take(const Call<T>& call, std::int64_t first, std::int64_t end) {
        room(end - first);
        const int d = config_.features;
        int count = 0;
        for (std::int64_t i = first; i < end; ++i) {
            const std::int64_t row = call.rows[i];
            const T* x = call.x + row * d;
            T* z = z_.data() + static_cast<std::ptrdiff_t>(count) * d;
            double target = call.y == nullptr ? 0.0 : call.y[row];
            bool fresh_label = false;
            if (config_.labels) {
                const auto found =
                    std::find(model_.order.begin(), model_.order.end(), static_cast<std::uint32_t>(target));
                fresh_label = found == model_.order.end();
                if (fresh_label && model_.order.size() >= 2 && !model_.many) {
                    call.refused[row] = static_cast<std::uint8_t>(Refused::label);
                    continue;
                }
                target = static_cast<double>(found - model_.order.begin());
            }
            Targets after = model_.targets;
            const double scaled =
                config_.targets ? after.follow(target, call.weights == nullptr ? 1.0 : call.weights[row]) : target;
            if (config_.targets && !after.sound()) {
                call.refused[row] = static_cast<std::uint8_t>(Refused::target);
                continue;
            }
            if (!scale(x, z)) {
                call.refused[row] = static_cast<std::uint8_t>(Refused::row);
                continue;
            }
            if (config_.targets) {
                means_[count] = model_.targets.mean();
                deviations_[count] = model_.targets.deviation();
                model_.targets = after;
            }
            known_[count] = static_cast<int>(model_.order.size());
            if (fresh_label) model_.order.push_back(static_cast<std::uint32_t>(call.y[row]));
            targets_[count] = scaled;
            if (call.weights != nullptr) weights_[count] = call.weights[row];
            places_[count++] = row;
        }
        return count;
    }

    // z = x as the learner gets it, and the scaler has learned x; false, and nothing has happened, if it cannot be learned
    bool scale(const T* x, T* z) {
        const int d = config_.features;
        if (!config_.scaled) {
            std::copy_n(x, d, z);
            return model_.active().accepts(z);
        }
        before_ = model_.mean;
        before_.insert(before_.end(), model_.squares.begin(), model_.squares.end());
        const double weight = scale_rows(x, z, 1, d, model_.mean.data(), model_.squares.data(), model_.weight,
                                         config_.keep, nullptr, config_.centre, config_.divide);
        if (!tiles<double>().finite(model_.squares.data(), d) || !model_.active().accepts(z)) {
            std::copy_n(before_.begin(), d, model_.mean.begin());
            std::copy_n(before_.begin() + d, d, model_.squares.begin());
            return false;
        }
        model_.weight = weight;
        ++model_.seen;
        return true;
    }

    // The same for a prediction: scaled by the present statistics.
    int transform(const Call<T>& call, std::int64_t first, std::int64_t end) {
        room(end - first);
        const int d = config_.features;
        const double gain = 1.0 / model_.weight;
        int count = 0;
        for (std::int64_t i = first; i < end; ++i) {
            const std::int64_t row = call.rows[i];
            const T* x = call.x + row * d;
            T* z = z_.data() + static_cast<std::ptrdiff_t>(count) * d;
            for (int j = 0; j < d; ++j) {
                double value = static_cast<double>(x[j]);
                if (config_.scaled && config_.centre) value -= model_.mean[j];
                if (config_.scaled && config_.divide) {
                    const double deviation = std::sqrt(model_.squares[j] * gain);
                    value /= deviation > 0.0 ? deviation : std::numeric_limits<double>::infinity();
                }
                z[j] = static_cast<T>(value);
            }
            if (model_.active().accepts(z))
                places_[count++] = row;
            else
                call.refused[row] = static_cast<std::uint8_t>(Refused::row);
        }
        return count;
    }

    // --------------------------------------------------------------------------------------------- learning

    void teach_two(int count, const Call<T>& call) {
        if (config_.labels)
            for (int t = 0; t < count; ++t) targets_[t] = 2.0 * targets_[t] - 1.0;
        run(model_.two, 0, count, 1, call);
        for (int t = 0; t < count; ++t) {
            const double f = scores_[t], weight = call.weights == nullptr ? 1.0 : weights_[t];
            if (config_.labels)
                model_.certainty.learn_two(f, targets_[t] > 0, weight);
            else if (config_.detects)
                model_.certainty.learn_novelty(f - levels_[t], weight);
            else
                model_.certainty.learn_real(call.y[places_[t]] - (config_.targets ? f * deviations_[t] + means_[t] : f),
                                            weight);
        }
        for (int t = 0; t < count; ++t) {
            if (config_.labels)
                emit_two(scores_[t], config_.given >= 0 ? config_.given : known_[t], places_[t], call);
            else
                call.out[places_[t]] = config_.detects   ? scores_[t] - levels_[t]
                                       : config_.targets ? scores_[t] * deviations_[t] + means_[t]
                                                         : scores_[t];
        }
    }

    void teach_many(int first, int count, const Call<T>& call) {
        int outputs = static_cast<int>(model_.many->loop().known);
        for (int t = first; t < count; ++t) outputs = std::max(outputs, static_cast<int>(targets_[t]) + 1);
        run(*model_.many, first, count, outputs, call);
        chances_.resize(outputs);
        for (int t = first; t < count; ++t) {
            const double* f = scores_.data() + static_cast<std::ptrdiff_t>(t - first) * outputs;
            model_.certainty.learn_many(f, outputs, static_cast<int>(targets_[t]), chances_.data(),
                                        call.weights == nullptr ? 1.0 : weights_[t]);
            emit_many(f, outputs, places_[t], call);
        }
    }

    void run(Learner<T>& learner, int first, int count, int outputs, const Call<T>& call) {
        scores_.resize(static_cast<std::size_t>(count - first) * outputs);
        levels_.resize(count - first);
        Block<T> block;
        block.y = config_.detects ? nullptr : targets_.data() + first;
        block.weights = call.weights == nullptr ? nullptr : weights_.data() + first;
        block.scores = scores_.data();
        block.columns = outputs;
        block.levels = levels_.data();
        learner.learn(z_.data() + static_cast<std::ptrdiff_t>(first) * config_.features, count - first, block);
    }

    // ---------------------------------------------------------------------------------------------- scores

    // A score for two classes, of which `known` had been seen before: as the estimator gives it, or in two columns.
    void emit_two(double f, int known, std::int64_t row, const Call<T>& call) const {
        if (call.columns == 0) {
            const bool turned = model_.order.size() > 1 && call.ranks[model_.order[1]] < call.ranks[model_.order[0]];
            call.out[row] = known < 2 && config_.given < 0 ? -f : turned ? -f : f;
            return;
        }
        double* out = call.out + row * call.columns;
        std::fill_n(out, call.columns, -std::numeric_limits<double>::infinity());
        if (known > 0) out[call.ranks[model_.order[0]]] = -0.5 * f;
        if (known > 1) out[call.ranks[model_.order[1]]] = 0.5 * f;
    }

    void emit_many(const double* f, int outputs, std::int64_t row, const Call<T>& call) const {
        double* out = call.out + row * call.columns;
        std::fill_n(out, call.columns, -std::numeric_limits<double>::infinity());
        for (int c = 0; c < outputs; ++c) out[call.ranks[model_.order[c]]] = f[c];
    }

    // the code of the label that the current scores predict; ties as in the estimators
    int winner(const double* f, const std::int32_t* ranks) const {
        if (model_.order.size() == 1) return 0;
        if (!model_.is_many) {
            const bool turned = ranks[model_.order[1]] < ranks[model_.order[0]];
            const int high = turned ? 0 : 1;
            return (turned ? -*f : *f) >= 0 ? high : 1 - high;
        }
        int best = 0;
        for (int c = 1; c < static_cast<int>(model_.order.size()); ++c)
            if (f[c] > f[best] || (f[c] == f[best] && ranks[model_.order[c]] < ranks[model_.order[best]])) best = c;
        return best;
    }
};

// The workspaces of a few threads.
template <class T> class Bank {
public:
    mutable Gate gate;  // of the workspaces: one call at a time

    explicit Bank(Config config) : config_(std::move(config)) {}
    Bank(const Bank&) = delete;
    Bank& operator=(const Bank&) = delete;
    int features() const { return config_.features; }

    struct State {
        const char* data;  // null: a new model
        std::size_t size;
    };

    // work(workspace, k) for every model; threads take the next one as they are ready
    template <class Work> void each(std::int64_t count, int threads, Work&& work) {
        threads = static_cast<int>(std::max<std::int64_t>(1, std::min<std::int64_t>(threads, count)));
        while (static_cast<int>(workspaces_.size()) < threads)
            workspaces_.push_back(std::make_unique<Workspace<T>>(config_));
        std::vector<std::exception_ptr> errors(threads);
        std::atomic<std::int64_t> next{0};
        Threads(threads).run(threads, [&](int begin, int end, int) {
            for (int thread = begin; thread < end; ++thread) try {
                    for (std::int64_t k; (k = next++) < count;) work(*workspaces_[thread], k);
                } catch (...) {
                    errors[thread] = std::current_exception();
                }
        });
        for (const std::exception_ptr& error : errors)
            if (error) std::rethrow_exception(error);
    }

private:
    Config config_;
    std::vector<std::unique_ptr<Workspace<T>>> workspaces_;
};

}  // namespace gossamer
