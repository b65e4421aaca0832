// The point whose part outside the span of the others weighs least leaves: its function is projected on their span, and
// only the part outside is lost. A newcomer in the span is learned inside it (ALGORITHMS 3.6).
#pragma once
#include "engine/gram_inverse.hpp"
#include "parts/budgets/base.hpp"
#include "simd/tiles.hpp"

namespace gossamer {

// What Project and Auto share. Self has room(), the number of points kept now, and grow(expansion, lost), which is told
// the norm of each loss; its state has the inverse.
template <class Self> struct Projecting : BudgetBase {
    static constexpr bool needs_kernel = true, reaches = true, follows = true;
    double limit = 0, tolerance = 0;
    bool at_once = false;  // newcomers are projected before the budget is full

    Self& self() { return static_cast<Self&>(*this); }
    Inverse& inverse() { return self().state.inverse; }
    void removed(int slot) {
        if (inverse().active) inverse().remove(slot);
    }
    void forgotten() { inverse().clear(); }

    // a newcomer in the span of the points is stepped with its part there
    template <class N> double reach(N& newcomer) {
        Inverse& q = inverse();
        if (!q.active) return newcomer.kappa;
        q.solve(newcomer.row(), newcomer.stride(), newcomer.kappa);
        return q.residual <= tolerance * newcomer.kappa ? q.inside : newcomer.kappa;
    }

    template <class N> void admit(N& newcomer) {
        Expansion& e = newcomer.expansion;
        Inverse& q = inverse();
        if (!q.active && e.size() < self().room()) {
            newcomer.place(e.size());
            if (at_once) invert(e);
            return;
        }
        if (!q.active) {  // full for the first time
            const int before = e.size();
            invert_independent(newcomer);
            q.solve(newcomer.row(), newcomer.stride(), newcomer.kappa);
            newcomer.predict();
            if (e.size() < before) newcomer.renew();
        }
        const double whole = e.square(newcomer.move());
        const bool known = q.residual <= std::max(tolerance, Inverse::least_pivot) * newcomer.kappa;
        int slot = e.size();
        if (!known && slot >= self().room()) slot = choose(e, whole);
        if (known || slot == refuse) {
            absorb(newcomer, whole);
            if (!known) self().grow(e, std::sqrt(q.residual * whole));
            return;
        }
        if (slot == e.size()) {
            q.append();
            newcomer.place(slot);
        } else {
            replace(newcomer, slot, whole);
        }
        if (q.worn(slot, [&](int i, int j) { return e.between(i, j); })) invert(e);
    }

private:
    // the slot that is missed least once the newcomer (of squared size `whole`) is there, or refuse for the newcomer
    int choose(const Expansion& e, double whole) {
        static thread_local Values lost;
        const Inverse& q = inverse();
        lost.resize(e.size());
        for (int i = 0; i < e.size(); ++i) lost[i] = e.weight2(i) / q.with_newcomer(i);
        const double least = tiles<double>().least(lost.data(), nullptr, e.size());
        if (whole * q.residual / (e.scale * e.scale) < least) return refuse;
        int slot = refuse;
        for (int i = 0; i < e.size(); ++i)
            if (lost[i] == least && (slot == refuse || e.births[i] < e.births[slot])) slot = i;
        return slot;
    }

    // f <- f + sum_c move[c] P k((x, c), .), P the projection on the span of the points, which solve() has found
    template <class N> void absorb(N& newcomer, double whole) {
        Expansion& e = newcomer.expansion;
        const Inverse& q = inverse();
        const double *move = newcomer.move(), *trace_move = newcomer.trace_move(), *f = newcomer.f(), *v = newcomer.v();
        double cross = 0;
        for (int c = 0; c < e.outputs(); ++c) {
            cross += 2 * move[c] * f[c];
            if (v != nullptr) e.inner += trace_move[c] * f[c] + move[c] * v[c] + move[c] * trace_move[c] * q.inside;
        }
        newcomer.change_all(
            [&](Values& a, int c) {
                tiles<double>().rank_two(a.data(), move[c] / e.scale, q.weights.data(), 0.0, a.data(), e.size());
            },
            [&](Values& w, int c) {
                const double by = (trace_move[c] - e.mix * move[c]) / e.trace_scale;
                tiles<double>().rank_two(w.data(), by, q.weights.data(), 0.0, w.data(), e.size());
            });
        newcomer.absorbed(q.weights.data());
        e.add_to_norm(cross, q.inside * whole);
        e.discarded += std::sqrt(q.residual * whole);
    }

    // The newcomer takes a slot, whose function goes to the others by their share in it, and to the newcomer, whose
    // coefficients change by the share that stands at the slot.
    template <class N> void replace(N& newcomer, int slot, double whole) {
        Expansion& e = newcomer.expansion;
        Inverse& q = inverse();
        double *move = newcomer.move(), *trace_move = newcomer.trace_move();
        const double *f = newcomer.f(), *v = newcomer.v();
        const double outside = e.scale * e.scale * e.weight2(slot) / q.with_newcomer(slot);
        double cross = 0, product = e.inner;
        for (int c = 0; c < e.outputs(); ++c) {
            cross += 2 * move[c] * f[c];
            if (v == nullptr) continue;
            product += trace_move[c] * f[c] + move[c] * v[c] + move[c] * trace_move[c] * newcomer.kappa -
                       e.scale * e.raw[c][slot] * e.trace_coef(c, slot) / q.with_newcomer(slot);
        }
        const double norm2 = e.norm2 + cross + newcomer.kappa * whole - outside;
        const Values& share = q.replace(slot);
        for (int c = 0; c < e.outputs(); ++c) {
            if (v != nullptr) trace_move[c] -= e.trace_coef(c, slot) * share[slot];
            move[c] -= e.scale * e.raw[c][slot] * share[slot];
        }
        newcomer.handed_over(slot, share.data(), -1);
        const auto spread = [&](Values& a, int) {
            tiles<double>().rank_two(a.data(), -a[slot], share.data(), 0.0, share.data(), e.size());
            a[slot] = 0;
        };
        newcomer.change_all(spread, spread);
        newcomer.place(slot);
        if (e.keeps_norm) e.norm2 = std::max(0.0, norm2);
        e.inner = product;
        e.discarded += std::sqrt(std::max(0.0, outside));
        self().grow(e, std::sqrt(std::max(0.0, outside)));
    }

    void invert(const Expansion& e) {
        inverse().make(
            e.size(), 0.0, [&](int i, int j) { return e.between(i, j); },
            [](int, const Values&, double) { return false; });
    }

    // The inverse for the first time: a point that the others express already leaves, its function goes to them.
    template <class N> [[gnu::noinline]] void invert_independent(N& newcomer) {
        Expansion& e = newcomer.expansion;
        Inverse& q = inverse();
        std::vector<int> gone;
        Values move;
        do {
            gone.clear();
            q.make(
                e.size(), std::max(tolerance, Inverse::least_pivot), [&](int i, int j) { return e.between(i, j); },
                [&](int slot, const Values& weights, double outside) {
                    move.clear();
                    for (const Values& a : e.raw) move.push_back(e.scale * a[slot]);
                    const auto hand_over = [&](Values& a, int) {
                        tiles<double>().rank_two(a.data(), a[slot], weights.data(), 0.0, weights.data(), e.size());
                        a[slot] = 0;
                    };
                    newcomer.change_all(hand_over, hand_over);
                    e.discarded += std::sqrt(outside * e.square(move.data()));
                    e.refresh_in = 0;
                    gone.push_back(slot);
                    return true;
                });
            if (!gone.empty()) tell(newcomer, gone);
            if (!gone.empty()) q.clear();
            for (auto slot = gone.rbegin(); slot != gone.rend(); ++slot) newcomer.remove(*slot);
        } while (!gone.empty());
    }

    // A rule with a metric needs the orthogonal projection of the points that leave on all that stay, whose Q there is.
    template <class N> void tell(N& newcomer, const std::vector<int>& gone) {
        const Expansion& e = newcomer.expansion;
        std::vector<int> kept;
        for (int i = 0; i < e.size(); ++i)
            if (!std::binary_search(gone.begin(), gone.end(), i)) kept.push_back(i);
        Values nearest;
        for (int slot : gone) {
            nearest.assign(e.size(), 0.0);
            for (std::size_t i = 0; i < kept.size(); ++i)
                for (std::size_t j = 0; j < kept.size(); ++j)
                    nearest[kept[i]] +=
                        inverse().at(static_cast<int>(i), static_cast<int>(j)) * e.between(kept[j], slot);
            newcomer.handed_over(slot, nearest.data(), 1);
        }
    }
};

struct Project : Projecting<Project> {
    struct State {
        Inverse inverse;
        template <class S, class F> static void each(S& s, F&& f) {
            f("inverse", s.inverse);
            f("inverse_age", s.inverse.age);
        }
        // in a bank's bytes, which had room for a number of the Forgetron's in version 1
        template <class S, class F> static void each_packed(S& s, F&& f) {
            double unused = 0;
            f("", unused);
            each(s, f);
        }
    } state;

    double room() const { return limit; }
    void grow(const Expansion&, double) {}

    static Project make(const Numbers& n) {
        Project budget;
        budget.limit = n.at(0);
        budget.tolerance = n.at(1);
        budget.at_once = n.at(2) != 0;
        return budget;
    }
};
GOSSAMER_BUDGET(Project, "project")

}  // namespace gossamer
