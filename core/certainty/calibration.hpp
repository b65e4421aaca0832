// The probabilities of a classifier: a link, and a curve over its log-odds that takes what one slope cannot bend. The twin of
// `Calibration` (certainty/calibration.py), where the formulas are.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "certainty/bend.hpp"
#include "certainty/link.hpp"

namespace gossamer {

// u -> u + a piecewise linear correction that is 0 at the start; it keeps the order.
struct Curve {
    static constexpr int knots = 9;
    static constexpr std::array<double, knots> at = {-5, -3, -1.5, -0.6, 0, 0.6, 1.5, 3, 5};
    static constexpr std::array<double, knots - 1> per_width = {1 / 2.0, 1 / 1.5, 1 / 0.9, 1 / 0.6,
                                                                1 / 0.6, 1 / 0.9, 1 / 1.5, 1 / 2.0};
    static constexpr double keep = 0.998;           // of what a knot has learned, at a row of its own
    static constexpr double prior_precision = 2.5;  // how firmly a shift stays near 0, in rows
    static constexpr double steepest_fall = 0.95;

    std::array<double, knots> shifts{};
    std::array<double, knots> curvatures = filled(prior_precision);

    template <class S, class F> static void each(S& s, F&& f) {
        for (auto& shift : s.shifts) f("shift", shift);
        for (auto& curvature : s.curvatures) f("curvature", curvature);
    }

    bool rises() const {
        for (int i = 0; i + 1 < knots; ++i)
            if (shifts[i] - shifts[i + 1] > steepest_fall * (at[i + 1] - at[i]) * (1 + 1e-9)) return false;
        return true;
    }

    struct Place {
        int left;
        double share;  // of the right knot
    };
    static Place place(double u) {
        const double x = std::min(at[knots - 1], std::max(at[0], u));
        int i = 0;  // counted without a branch
        for (int k = 1; k + 1 < knots; ++k) i += x >= at[k];
        return {i, (x - at[i]) * per_width[i]};
    }
    double apply(double u) const { return apply(u, place(u)); }
    double apply(double u, const Place& here) const {
        return u + (1.0 - here.share) * shifts[here.left] + here.share * shifts[here.left + 1];
    }

    // Learn log-odds and whether the event came, 1 or 0; returns the probability before.
    double learn(double u, double hit, double weight) {
        const Place here = place(u);
        const double v = apply(u, here);
        const Bend bend(v, hit);
        const int i = here.left;
        const Duo parts = weight * Duo{1.0 - here.share, here.share};
        const Duo grown = (1.0 - keep) * parts, fresh = grown < 1.0 ? grown : Duo{1.0, 1.0};
        Duo shift = load_duo(&shifts[i]), curvature = load_duo(&curvatures[i]);
        curvature += fresh * (prior_precision - curvature);
        const Duo back = fresh * prior_precision * shift;
        const Duo along = bend.e * (bend.error[0] * parts + back) + (bend.error[1] * parts + back);
        shift -= along / (bend.e * (bend.safe[0] * parts + curvature) + (bend.safe[1] * parts + curvature));
        const double per_sum = 1.0 / (1.0 + bend.e), p = (v < 0 ? bend.e : 1.0) * per_sum;
        store_duo(&curvatures[i], curvature + bend.e * per_sum * per_sum * parts);
        // a step that would break the order of scores is not taken
        if (!(falls(shift[0], shift[1], i) || (i > 0 && falls(shifts[i - 1], shift[0], i - 1)) ||
              (i + 2 < knots && falls(shift[1], shifts[i + 2], i + 1))))
            store_duo(&shifts[i], shift);
        return p;
    }

    // time passes: what was learned counts less, and goes back to the prior
    void fade(double factor) {
        for (int i = 0; i < knots; ++i) {
            curvatures[i] = factor * curvatures[i] + (1.0 - factor) * prior_precision;
            shifts[i] -= (1.0 - factor) * prior_precision * shifts[i] / curvatures[i];
        }
        if (!rises()) shifts.fill(0.0);
    }

private:
    static std::array<double, knots> filled(double value) {
        std::array<double, knots> values;
        values.fill(value);
        return values;
    }
    static bool falls(double left, double right, int i) { return left - right > steepest_fall * (at[i + 1] - at[i]); }
};

// The mean of the slopes and offsets of a link, of about the last 2,000 rows.
struct LinkMean {
    static constexpr double slowest = 0.0005;   // the least share of a row
    static constexpr double first_rows = 50.0;  // that the prior counts for
    double slope = links::prior_slope;
    double offset = 0;
    double gain = 1.0 / first_rows;  // the share of the next row

    template <class S, class F> static void each(S& s, F&& f) {
        f("mean_slope", s.slope), f("mean_offset", s.offset), f("mean_gain", s.gain);
    }
    void follow(const Link& link, double weight) {
        const double grown = weight * gain, share = std::min(1.0, grown);
        slope += share * (link.slope - slope);
        offset += share * (link.offset - offset);
        if (gain > slowest) gain = std::max(slowest, gain / (1.0 + grown));
    }
    // time passes: the mean follows the link, which goes back to the prior
    void fade(const Link& link, double factor) {
        slope += (1.0 - factor) * (link.slope - slope);
        offset += (1.0 - factor) * (link.offset - offset);
        gain = std::max(slowest, 1.0 / (factor / gain + (1.0 - factor) * first_rows));
    }
    bool sound() const {
        return slope >= links::least_slope && slope <= links::largest_slope && gain >= slowest &&
               gain <= 1.0 / first_rows;
    }
};

struct Calibration {
    static constexpr double quick = 0.992;  // the forgetting of the link: about 125 rows
    static constexpr double steady = 0.55;  // the share of its mean in the log-odds
    Link two = {quick};
    LinkMean mean;
    SoftmaxLink many;
    Curve curve;  // of the second class, or of the class with the largest score

    template <class S, class F> static void each(S& s, F&& f) {
        Link::each(s.two, f), LinkMean::each(s.mean, f), SoftmaxLink::each(s.many, f), Curve::each(s.curve, f);
    }

    // the probability of the second class
    double probability(double f) const {
        if (!std::isfinite(f)) links::refuse_score(f);
        const double z = two.standardize(links::clip_score(f));
        return agree(links::sigmoid(curve.apply(pooled(two, mean, z, two.slope * z + two.offset))), f);
    }
    // A finite score; returns the probability of the second class before.
    double learn(double f, bool second, double weight) {
        const double score = links::clip_score(f), z = two.standardize(score), u = two.slope * z + two.offset;
        const double hit = second ? 1.0 : 0.0, p = curve.learn(pooled(two, mean, z, u), hit, weight);
        if (weight == 1.0) {
            step(two, z, u, hit);
            two.total = two.forgetting * two.total + 1.0;
            two.squares = two.forgetting * two.squares + score * score;
        } else {
            two.update(score, second, weight);
        }
        mean.follow(two, weight);
        return agree(p, f);
    }
    // The same for some finite scores, with how strange each was: 1 - p of the class that came. y: above 0 for the second.
    static constexpr int span = 128;  // rows
    [[gnu::noinline]] void learn_span(const double* f, const double* y, int rows, double* strange) {
        double scores[span], z[span], hits[span];
        Link link = two;
        LinkMean steadier = mean;
        for (int t = 0; t < rows; ++t) {
            scores[t] = links::clip_score(f[t]);
            hits[t] = y[t] > 0 ? 1.0 : 0.0;
        }
        for (int t = 0; t < rows; ++t) {
            link.total = link.forgetting * link.total + 1.0;
            link.squares = link.forgetting * link.squares + scores[t] * scores[t];
            z[t] = link.squares / link.total;
        }
        for (int t = 0; t < rows; ++t) z[t] = z[t] > 0 ? scores[t] / std::sqrt(z[t]) : 0.0;
        for (int t = 0; t < rows; ++t) {
            const double u = link.slope * z[t] + link.offset, both = pooled(link, steadier, z[t], u);
            step(link, z[t], u, hits[t]);
            steadier.follow(link, 1.0);
            strange[t] = curve.learn(both, hits[t], 1.0);
        }
        for (int t = 0; t < rows; ++t) strange[t] = std::abs(hits[t] - agree(strange[t], f[t]));
        two = link, mean = steadier;
    }

    // f, p: (classes,), not one array. The class of the largest score gets the probability that the curve says, the others
    // share the rest, and none overtakes it.
    void probability(const double* f, int classes, double* p) const {
        for (int k = 0; k < classes; ++k)
            if (std::isnan(f[k]) || f[k] == std::numeric_limits<double>::infinity()) {
                std::fill_n(p, classes, std::numeric_limits<double>::quiet_NaN());  // a model that diverged
                return;
            }
        many.probability(f, classes, p);
        correct(p, classes, top(f, classes));
    }
    // q: room for (classes,); returns the probability of the label before, if it is of a known class
    double learn(const double* f, int classes, int label, double* q, double weight) {
        const int best = top(f, classes);
        const SoftmaxLink::Row row = many.probability(f, classes, q);
        double before = 0;
        if (label >= 0 && label < classes && std::isfinite(f[label]) && best >= 0) {
            const double rest = others(q, classes, best);
            before = q[label];
            if (rest > 0) {
                const double odds = log_odds(q[best], rest), chance = chance_of_best(q, classes, best, rest, odds);
                before = label == best ? chance : before * ((1.0 - chance) / rest);
                curve.learn(odds, label == best ? 1.0 : 0.0, weight);
            }
        }
        many.learn_from(f, classes, label, q, row, weight);
        return before;
    }

    bool sound() const {
        const auto usable = [](const auto& l) {
            return l.forgetting > 0 && l.forgetting <= 1 && l.slope >= links::least_slope &&
                   l.slope <= links::largest_slope && l.slopes > 0 && l.total >= 0 && l.squares >= 0;
        };
        bool fits = usable(two) && usable(many) && two.offsets > 0 && two.slopes * two.offsets > two.mixed * two.mixed;
        for (const double curvature : curve.curvatures) fits = fits && curvature > 0;
        return fits && mean.sound() && curve.rises();
    }

    // time passes
    void fade(double factor) {
        if (factor == 1) return;
        two.fade(factor), mean.fade(two, factor), many.fade(factor), curve.fade(factor);
    }

    // A third class has come: f = g_1 - g_0, g_1 = -g_0.
    void widen() {
        const double slope = pooled(two, mean, 1.0, two.slope + two.offset) - pooled(two, mean, 0.0, two.offset);
        many = {links::forgetting, links::clip_slope(slope / 2), 4 * two.slopes, two.total, two.squares / 4};
        curve = Curve{};
    }

private:
    static constexpr double barely = 1e-6;

    // the log-odds of the link, u = slope z + offset, and those of its mean
    static double pooled(const Link& link, const LinkMean& mean, double z, double u) {
        return u + steady * ((mean.slope - link.slope) * z + (mean.offset - link.offset));
    }

    // The step of `Link::update` for a row of weight 1, with all divisions at once.
    static void step(Link& link, double z, double u, double hit) {
        const Bend bend(u, hit);
        const double keep = link.forgetting, fresh = 1.0 - keep;
        const double slopes = keep * link.slopes + fresh * links::prior_precision, mixed = keep * link.mixed;
        const double offsets = keep * link.offsets + fresh * links::offset_precision;
        const auto in_e = [&](double factor, Duo parts, double more) {
            return bend.e * (factor * parts[0] + more) + (factor * parts[1] + more);
        };
        const double along_slope =
            in_e(z, bend.error, fresh * links::prior_precision * (link.slope - links::prior_slope));
        const double along_offset = in_e(1.0, bend.error, fresh * links::offset_precision * link.offset);
        const double a = in_e(z * z, bend.safe, slopes), b = in_e(z, bend.safe, mixed),
                     c = in_e(1.0, bend.safe, offsets);
        const double share = b / c, start = link.offset - along_offset / c + share * link.slope;
        link.slope = links::clip_slope(link.slope - (c * along_slope - b * along_offset) / (a * c - b * b));
        link.offset = start - share * link.slope;  // the best one for this slope
        const double per_sum = 1.0 / (1.0 + bend.e), curvature = bend.e * per_sum * per_sum;
        link.slopes = slopes + curvature * z * z;
        link.mixed = mixed + curvature * z;
        link.offsets = offsets + curvature;
    }
    // the more probable class is the predicted one
    static double agree(double p, double f) {
        return std::min(f < 0 ? 0.5 - barely : 1.0, std::max(f > 0 ? 0.5 + barely : 0.0, p));
    }
    static double log_odds(double p, double rest) { return std::log(p) - std::log(rest); }
    static double others(const double* p, int classes, int best) {
        double sum = 0;
        for (int k = 0; k < classes; ++k)
            if (k != best) sum += p[k];
        return sum;
    }
    static int top(const double* f, int classes) {
        int best = -1;
        for (int k = 0; k < classes; ++k)
            if (std::isfinite(f[k]) && (best < 0 || f[k] > f[best])) best = k;
        return best;
    }
    void correct(double* p, int classes, int best) const {
        if (best < 0) return;
        const double rest = others(p, classes, best);
        if (!(rest > 0)) return;
        const double chance = chance_of_best(p, classes, best, rest, log_odds(p[best], rest));
        for (int k = 0; k < classes; ++k) p[k] *= (1.0 - chance) / rest;
        p[best] = chance;
    }
    double chance_of_best(const double* p, int classes, int best, double rest, double odds) const {
        double second = 0;
        for (int k = 0; k < classes; ++k)
            if (k != best) second = std::max(second, p[k]);
        second /= rest;
        return std::max(links::sigmoid(curve.apply(odds)), second / (1.0 + second) + barely);
    }
};

}  // namespace gossamer
