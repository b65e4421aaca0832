// The implicit step in a metric that is learned: recursive least squares, AROW, the online Newton step (docs/second_order.md).
#pragma once
#include "engine/metric.hpp"
#include "parts/rules/base.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

struct Newton : RuleBase {
    static constexpr bool moves_all = true, keeps_norm = false, follows = true;
    static constexpr double least_variance = 1e-9, least_pivot = 1e-15, least_spread = 1e-6, smallest_factor = 1e-6;
    double noise = 0.1, forgetting = 1, settling = 0, keep = 1;
    struct State {
        Metric metric;
        double factor = 1;  // of the metric
        template <class S, class F> static void each(S& s, F&& f) {
            f("metric", s.metric);
            f("factor", s.factor);
        }
    } state;

    static Newton make(const Numbers& n) {
        Newton rule = make_base<Newton>(n);
        rule.noise = n.at(3);
        rule.forgetting = n.at(4);
        rule.settling = n.at(5);
        rule.keep = std::sqrt(rule.forgetting);
        return rule;
    }

    // whether an example asks for no step, so that its variance is not needed
    template <class L> bool rests(const L& loss, const Example& e) const {
        if (!(e.kappa > 0 && e.weight > 0)) return true;
        if constexpr (many<L>) {
            slope_.resize(e.n);
            loss.slope(e.f, e.n, e.aim(), slope_.data());
            return std::all_of(slope_.begin(), slope_.end(), [](double s) { return s == 0; });
        } else {
            return loss.slope(e.score(), e.y) == 0;
        }
    }

    template <class L> Step step(const L& loss, const Example& e, double* move, double*) const {
        Step step{keep, e.offset, loss.level};
        std::fill_n(move, e.n, 0.0);
        if constexpr (!many<L>)
            if (e.weight > 0) step.level = loss.adapt(e.score(), e.y, e.rate * e.weight);
        weight_ = 0;
        shrink_ = 1;
        const Along& along = e.along;
        if (along.rests) return step;
        if (!along.solved) solve(along);
        const double variance = e.kappa - clip(covered_, 0.0, e.kappa);
        const double c = e.weight / (noise + settling / static_cast<double>(e.updates + 1));
        if (variance <= least_variance * e.kappa || variance + 1 / c <= least_spread * e.kappa) {
            shrink_ = fit(e.kappa);
            return step;
        }
        double stiffness = 0;
        if constexpr (many<L>) {
            loss.implicit(e.f, 1.0, e.n, e.aim(), variance, c, move);
            slope_.resize(e.n);
            for (int j = 0; j < e.n; ++j) slope_[j] = e.f[j] + variance * move[j];
            if constexpr (several<L>)
                stiffness = loss.stiffness(slope_.data(), e.n, e.aim(), move, c);
            else
                stiffness = loss.stiffness(slope_.data(), e.n, e.aim(), move);
        } else {
            move[0] = loss.implicit(e.score(), e.y, variance, c);
            stiffness = gossamer::stiffness(loss, e.score() + variance * move[0], e.y, -move[0] / c);
        }
        const double h = c * stiffness;
        stiffness_ = h;
        weight_ = h / (1 + h * variance);
        for (int j = 0; j < e.n; ++j) move[j] *= keep;
        return step;
    }

    double variance(const Along& along, double kappa) const {
        if (!along.solved) solve(along);
        return kappa - clip(covered_, 0.0, kappa);
    }
    const Metric* metric() const { return &state.metric; }
    double metric_factor() const { return state.factor; }

    void took(const Example& e, const double*) {
        pending_.assign(e.along.direction, e.along.direction + e.along.points);
        stepped_ = true;
    }
    void placed(int slot) {
        if (slot == static_cast<int>(pending_.size())) pending_.push_back(0.0);
        pending_[slot] += 1;
        learn();
    }
    void absorbed(const double* shares, int n) {
        pending_.resize(n);
        for (int i = 0; i < n; ++i) pending_[i] += shares[i];
        learn();
    }
    // the function of a slot goes to the others: change[j] = the share of slot j in it, less 1 at the slot itself
    void handed_over(int slot, const double* change) {
        settle();
        change_.assign(change, change + state.metric.size());
        slot_ = slot;
        if (!stepped_) return settle();
        const double own = pending_[slot];
        for (std::size_t i = 0; i < pending_.size(); ++i) pending_[i] += own * change_[i];
    }
    // The observation of a slot is deleted, where the newcomer will take it: how the others take its function over.
    double drop(int slot, Values& shares) {
        const int n = state.metric.size();
        shares.resize(n);
        state.metric.read(slot, shares.data());
        const double own = stepped_ ? weight_ * pending_[slot] : 0.0;
        for (int i = 0; i < n; ++i) shares[i] = state.factor * shares[i] + (stepped_ ? own * pending_[i] : 0.0);
        const double pivot = shares[slot];
        double largest = 0;
        for (double share : shares) largest = std::max(largest, std::abs(share));
        shares[slot] = own;
        const bool has = pivot > least_pivot * largest;
        for (double& share : shares) share = has ? -share / pivot : 0.0;
        return has ? pivot : INFINITY;
    }
    // Both observations are deleted, and one is learned at the new point that brings mean and variance there back to what
    // they were: so A never leaves [0, K^-1].
    void merged(int slot, int other, const Values& kernel, double kappa, Rows2& coefs) {
        Metric& a = state.metric;
        const int n = static_cast<int>(kernel.size());
        Values row = kernel, v(n), means;
        const auto covered = [&] {
            a.multiply(row.data(), v.data());
            return clip(state.factor * tiles<double>().dot(row.data(), v.data(), n), 0.0, kappa);
        };
        const double before = covered();
        for (const Values& c : coefs) means.push_back(tiles<double>().dot(row.data(), c.data(), n));
        for (int gone : {slot, other}) {
            a.read(gone, v.data());
            double largest = 0;
            for (double x : v) largest = std::max(largest, std::abs(x));
            const double pivot = v[gone] > least_pivot * largest ? v[gone] : 0.0;
            a.erase(gone, v.data(), pivot);
            for (Values& c : coefs) {
                const double own = pivot > 0 ? c[gone] / pivot : 0.0;
                for (int i = 0; i < n; ++i) c[i] -= own * v[i];
                c[gone] = 0;
            }
        }
        row[slot] = row[other] = 0;
        const double variance = kappa - covered();
        if (variance <= least_spread * kappa) return;                                // the others say what is there
        const double share = std::max(0.0, before - (kappa - variance)) / variance;  // which the observation takes
        pending_.resize(n);
        for (int i = 0; i < n; ++i) pending_[i] = -state.factor * v[i];
        pending_[slot] = 1;
        for (std::size_t c = 0; c < coefs.size(); ++c) {
            const double g = (means[c] - tiles<double>().dot(row.data(), coefs[c].data(), n)) / variance;
            for (int i = 0; i < n; ++i) coefs[c][i] += g * pending_[i];
        }
        weight_ = share / variance;
        learn();
    }
    void renewed(const double* row, int n, double kappa) {
        pending_.assign(n, 0.0);
        const Along along{row, pending_.data(), n};
        solve(along);
        weight_ = stiffness_ / (1 + stiffness_ * (kappa - clip(covered_, 0.0, kappa)));
    }
    void removed(int slot) {
        settle();
        state.metric.remove(slot);
        if (!stepped_) return;
        pending_[slot] = pending_.back();
        pending_.pop_back();
    }
    void forgotten() {
        state = State();
        stepped_ = false;
        slot_ = -1;
    }
    bool ages() const { return forgetting != 1; }
    double fade(double factor) {
        shrink_by(factor);
        return std::sqrt(factor);
    }
    void ended() {
        settle();
        stepped_ = false;
        shrink_by(forgetting * shrink_);
        shrink_ = 1;
    }

private:
    mutable double covered_ = 0, stiffness_ = 0, weight_ = 0;  // of the last example: k A k, h and w
    mutable double shrink_ = 1;                                // and the factor by which A is found too large
    mutable Values slope_, product_;
    Values pending_, change_;  // u, as far as it is known; a map of the points that the metric has not seen yet
    int slot_ = -1;            // the slot that it hands over
    bool stepped_ = false;

    // A is at most K^-1, so k A k at most k(x, x): every row that asks for a step checks it. Where rounding has made it larger,
    // all of A shrinks to that.
    double fit(double kappa) const { return covered_ > kappa ? kappa / covered_ : 1.0; }

    void shrink_by(double factor) {
        state.factor *= factor;
        if (state.factor >= smallest_factor) return;
        state.metric.scale(state.factor);
        state.factor = 1;
    }

    // direction = -A k
    void solve(const Along& along) const {
        const int known = state.metric.size();
        product_.resize(known);
        state.metric.multiply(along.row, product_.data());
        covered_ = state.factor * tiles<double>().dot(along.row, product_.data(), known);
        for (int i = 0; i < known; ++i) along.direction[i] = -state.factor * product_[i];
        along.solved = true;
    }

    void learn() {
        Metric& a = state.metric;
        a.extend(static_cast<int>(pending_.size()));
        const double w = weight_ / std::max(state.factor, smallest_factor);  // a file may say anything
        if (slot_ >= 0)
            a.map(slot_, change_.data(), w, pending_.data());
        else
            a.add(w, pending_.data());
        slot_ = -1;
        stepped_ = false;
    }

    void settle() {
        if (slot_ < 0) return;
        state.metric.map(slot_, change_.data(), 0.0, change_.data());
        slot_ = -1;
    }
};
GOSSAMER_RULE(Newton, "newton")

}  // namespace gossamer
