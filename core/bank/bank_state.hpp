// One model of a bank, and its bytes: little-endian numbers one after the other, as docs/bank.md lists them;
// gossamer/bank/compact.py reads them too.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "certainty/certainty.hpp"
#include "engine/learner.hpp"
#include "engine/targets.hpp"

namespace gossamer {

// The configuration that all models of a bank share.
struct Config {
    std::vector<std::pair<std::string, Numbers>> kernel;
    Loop two;                  // for one score
    std::optional<Loop> many;  // for a score per class
    int features = 1;
    bool own_width = false;  // each model has a gamma of its own, and the kernel is that one name
    bool scaled = false, centre = true, divide = true;  // a scaler before the learner
    bool targets = false;                               // they are scaled online
    double keep = 1;
    bool labels = false, detects = false;
    Certainty certainty() const {
        Certainty fresh;
        fresh.task = labels ? Certainty::Task::classes : detects ? Certainty::Task::novelty : Certainty::Task::real;
        return fresh;
    }
    int given = -1;  // classes that are known from the start, in order
};

class Reader {
public:
    Reader(const char* data, std::size_t size) : at_(data), left_(size) {}
    std::size_t left() const { return left_; }
    template <class V> V number() {
        V value;
        array(&value, 1);
        return value;
    }
    template <class V> void array(V* to, std::size_t count) {
        if (count == 0) return;
        if (count > left_ / sizeof(V)) fail("whole");
        std::memcpy(to, at_, count * sizeof(V));
        at_ += count * sizeof(V);
        left_ -= count * sizeof(V);
    }
    [[noreturn]] static void fail(const char* rule) {
        throw std::invalid_argument(std::string("The 'data' parameter of ModelBank must be ") + rule +
                                    ". Got damaged bytes instead.");
    }

private:
    const char* at_;
    std::size_t left_;
};

class Writer {
public:
    template <class V> void number(V value) { array(&value, 1); }
    template <class V> void array(const V* from, std::size_t count) {
        if (count > 0) bytes.append(reinterpret_cast<const char*>(from), count * sizeof(V));
    }
    std::string bytes;
};

// The purpose of a deserialized model: its kernel values and their inverse are made only for learning. A model to widen has
// a score for each of its two classes from then on.
enum class Purpose { teach, ask, widen };

// A deserialized model: a learner, the labels of its outputs, and the scaler before it.
template <class T> struct Model {
    const Config& config;
    Learner<T> two;
    std::unique_ptr<Learner<T>> many;
    bool is_many = false;
    std::vector<std::uint32_t> order;  // the labels seen, by their codes
    double gamma = 1;
    double weight = 0;  // of the scaler
    std::int64_t seen = 0;
    Values mean, squares;
    Targets targets;
    Certainty certainty;

    explicit Model(const Config& config)
        : config(config), two(kernel(1.0), config.two, config.features), mean(config.features),
          squares(config.features), certainty(config.certainty()) {
        if (config.many) many = std::make_unique<Learner<T>>(kernel(1.0), *config.many, config.features);
        for (int c = 0; c < config.given; ++c) order.push_back(static_cast<std::uint32_t>(c));
        is_many = config.given >= 0 && config.many;
        Writer w;
        write(w);
        fresh_ = std::move(w.bytes);
    }

    Learner<T>& active() { return is_many ? *many : two; }
    const Learner<T>& active() const { return is_many ? *many : two; }

    void use(double width) {
        gamma = width;
        if (!config.own_width || gamma == in_use_) return;
        two.use(kernel(gamma));
        if (many) many->use(kernel(gamma));
        in_use_ = gamma;
    }

    // Deserialize the model of these bytes, or start a new one; `labels`: the number of labels that the bank knows.
    void begin(const char* data, std::size_t size, std::size_t labels, Purpose purpose) {
        data == nullptr ? read(fresh_.data(), fresh_.size(), purpose) : read(data, size, purpose);
        for (std::uint32_t label : order)
            if (label >= labels) Reader::fail("a model of this bank");
    }

    // A third class has come: g_1 = -g_0 = f / 2, or what the loss says, as in estimators/labels.py.
    void widen() {
        Writer w;
        write(w);
        const std::vector<std::uint32_t> labels = order;
        read(w.bytes.data(), w.bytes.size(), Purpose::widen);
        order = labels;
        certainty.calibration.widen();
    }

    // Serialize the model.
    void write(Writer& w) const {
        const Learner<T>& learner = active();
        const Loop& loop = learner.loop();
        const Expansion& e = loop.expansion;
        const auto m = static_cast<std::size_t>(e.size());
        const bool same =
            m > 0 && std::all_of(e.kappas.begin(), e.kappas.end(), [&](double k) { return k == e.kappas[0]; });
        const bool wide = loop.steps > std::numeric_limits<std::uint32_t>::max();
        std::vector<Values> arrays;  // of the parts
        bool has_packed = false;
        each_field(loop, [&](const char*, const auto& field) {
            if constexpr (!is_number<std::decay_t<decltype(field)>>) {
                arrays.emplace_back(pack(field));
                has_packed = has_packed || (packed_length(field, e.size()) && !arrays.back().empty());
            }
        });
        std::size_t packed = 0;
        for (const Values& values : arrays) packed += values.size();
        std::array<std::uint64_t, 2> changed{};
        const Values sure = changes(changed);
        w.bytes.clear();
        w.bytes.reserve(256 + 4 * order.size() + 16 * mean.size() + 8 * packed +
                        m * (16 * (e.raw.size() + e.trace.size()) + 16 + sizeof(T) * config.features));
        w.number(version);
        w.number(static_cast<std::uint8_t>(sizeof(T)));
        w.number(static_cast<std::uint8_t>((is_many ? many_scores : 0) | (wide ? wide_births : 0) |
                                           (same ? one_kappa : 0) | (has_packed ? with_packed : 0) |
                                           (sure.empty() ? 0 : with_certainty)));
        w.number(std::uint8_t{0});
        for (std::size_t size : {static_cast<std::size_t>(config.features), m, e.raw.size(), order.size()})
            w.number(static_cast<std::uint32_t>(size));
        w.array(order.data(), order.size());
        for (double number : {e.scale, e.offset, e.norm2, loop.level(), e.discarded}) w.number(number);
        for (std::int64_t number : {e.refresh_in, loop.steps, loop.updates, loop.mistakes}) w.number(number);
        if (!e.trace.empty())
            for (double number : {e.trace_scale, e.mix, e.inner, e.rate}) w.number(number);
        each_field(loop, [&](const char*, const auto& field) {
            if constexpr (is_number<std::decay_t<decltype(field)>>)
                w.number(field);
            else if (!packed_length(field, e.size()))
                w.number(static_cast<std::int64_t>(pack(field).size()));
        });
        if (config.own_width) w.number(gamma);
        if (config.scaled) {
            w.number(weight);
            w.number(seen);
            w.array(mean.data(), mean.size());
            w.array(squares.data(), squares.size());
        }
        if (config.targets) w.array(&targets.total, 4);
        for (const Rows2* rows : {&e.raw, &e.trace})
            for (const Values& row : *rows) w.array(row.data(), m);
        w.array(e.kappas.data(), same ? 1 : m);
        for (std::int64_t birth : e.births) wide ? w.number(birth) : w.number(static_cast<std::uint32_t>(birth));
        const std::vector<T> points = learner.points().rows();
        w.array(points.data(), points.size());
        for (const Values& values : arrays) w.array(values.data(), values.size());
        if (sure.empty()) return;
        w.array(sure.data(), sure.size());
        w.array(changed.data(), changed.size());
    }

    // Deserialize and validate.
    void read(const char* data, std::size_t size, Purpose purpose) {
        const bool halve = purpose == Purpose::widen;
        Reader r(data, size);
        const bool known = r.number<std::uint8_t>() == version && r.number<std::uint8_t>() == sizeof(T);
        const auto flags = r.number<std::uint8_t>();
        if (!known || r.number<std::uint8_t>() != 0) Reader::fail("a model of this bank");
        const auto d = r.number<std::uint32_t>(), m = r.number<std::uint32_t>(), outputs = r.number<std::uint32_t>(),
                   labels = r.number<std::uint32_t>();
        is_many = halve || (flags & many_scores) != 0;
        if (d != static_cast<std::uint32_t>(config.features) || (is_many && !many) || labels > r.left() / 4 ||
            m > r.left() || (!is_many && outputs != 1) || outputs > labels + 1 || (labels > 0 && !config.labels))
            Reader::fail("a model of this bank");
        order.resize(labels);
        r.array(order.data(), labels);
        Learner<T>& learner = active();
        Loop& loop = learner.loop();
        Expansion& e = loop.expansion;
        e.scale = r.number<double>();
        e.offset = r.number<double>();
        const double share = halve ? std::visit([](const auto& l) { return l.widening; }, loop.loss) : 1.0;
        e.norm2 = r.number<double>() * (halve ? 2 * share * share : 1.0);
        loop.set_level(halve ? loop.level() : r.number<double>());
        if (halve) r.number<double>();
        e.discarded = r.number<double>();
        e.refresh_in = r.number<std::int64_t>();
        loop.steps = r.number<std::int64_t>();
        loop.updates = r.number<std::int64_t>();
        loop.mistakes = r.number<std::int64_t>();
        bool fits = e.refresh_in >= -(std::int64_t(1) << 32) && e.refresh_in <= Expansion::refresh_every;
        for (std::int64_t count : {loop.steps, loop.updates, loop.mistakes}) fits = fits && countable(count);
        if (!fits || (e.with_gram && m > most_tracked)) Reader::fail("a model of this bank");
        if (!e.trace.empty()) {
            e.trace_scale = r.number<double>();
            e.mix = r.number<double>();
            e.inner = r.number<double>() * (halve ? 2 * share * share : 1.0);
            e.rate = r.number<double>();
        }
        lengths_.clear();
        each_field(loop, [&](const char*, auto& field) {
            using F = std::decay_t<decltype(field)>;
            if constexpr (is_number<F>) {
                field = r.number<F>();
                if (!std::is_floating_point_v<F> && !countable(static_cast<std::int64_t>(field)))
                    Reader::fail("a model of this bank");
            } else if (!packed_length(field, static_cast<int>(m))) {
                lengths_.push_back(r.number<std::int64_t>());
            }
        });
        if (config.own_width) {
            const double width = r.number<double>();
            if (!(width > 0 && std::isfinite(width))) Reader::fail("a model of this bank");
            use(width);
        }
        if (config.scaled) {
            weight = r.number<double>();
            seen = r.number<std::int64_t>();
            r.array(mean.data(), mean.size());
            r.array(squares.data(), squares.size());
            const bool usable = std::all_of(squares.begin(), squares.end(), [](double s) { return s >= 0; }) &&
                                weight >= 0 && std::isfinite(weight) && countable(seen) &&
                                tiles<double>().finite(mean.data(), mean.size()) &&
                                tiles<double>().finite(squares.data(), squares.size());
            if (!usable) Reader::fail("a model of this bank");
        }
        if (config.targets) {
            r.array(&targets.total, 4);
            if (!targets.sound()) Reader::fail("a model of this bank");
        }
        read_rows(r, e.raw, m, outputs, halve, share);
        if (!e.trace.empty()) read_rows(r, e.trace, m, outputs, halve, share);
        const std::size_t rows = halve ? 2 : outputs;
        loop.known = is_many ? (halve ? 2 : static_cast<std::int64_t>(config.given < 0 ? labels : config.given)) : 0;
        if (is_many && static_cast<std::int64_t>(rows) != loop.known) Reader::fail("a model of this bank");
        e.summed.resize(rows);
        for (Values& row : e.summed) row.assign(m, 0.0);
        e.dropped.assign(rows, Values{});
        e.entered.assign(m, 0.0);
        e.kappas.resize(m);
        if ((flags & one_kappa) != 0)
            std::fill(e.kappas.begin(), e.kappas.end(), r.number<double>());
        else
            r.array(e.kappas.data(), m);
        e.births.resize(m);
        e.ids.resize(m);
        for (std::uint32_t i = 0; i < m; ++i) {
            e.births[i] = (flags & wide_births) != 0 ? r.number<std::int64_t>() : r.number<std::uint32_t>();
            e.ids[i] = -e.births[i];
            if (e.births[i] < 1 || e.births[i] > loop.steps || !(e.kappas[i] >= 0) || std::isinf(e.kappas[i]))
                Reader::fail("a model of this bank");
        }
        points_.resize(static_cast<std::size_t>(m) * d);
        r.array(points_.data(), points_.size());
        read_arrays(r, loop, static_cast<int>(m), (flags & with_packed) != 0, purpose != Purpose::ask);
        certainty = config.certainty();
        if ((flags & with_certainty) != 0) read_certainty(r);
        if (r.left() != 0 || !tiles<T>().finite(points_.data(), points_.size())) Reader::fail("a model of this bank");
        if (purpose == Purpose::ask) return learner.restore_points(points_, {}, false);
        e.restored();
        learner.restore_points(points_, {});
    }

private:
    static constexpr std::uint8_t version = 1;
    enum Flag : std::uint8_t { many_scores = 1, wide_births = 2, one_kappa = 4, with_packed = 8, with_certainty = 16 };
    static constexpr int most_tracked = 4096;

    double in_use_ = 1;  // the gamma of the kernels in use
    std::string fresh_;  // a model that has learned nothing
    std::vector<T> points_;
    std::vector<std::int64_t> lengths_;
    Values values_;

    Kernel kernel(double width) const {
        if (!config.own_width) return Kernel(config.kernel, config.features);
        return Kernel({{config.kernel[0].first, {width}}}, config.features);
    }

    // The numbers of `certainty` that are not those of a new one, and a bit for each.
    Values changes(std::array<std::uint64_t, 2>& bits) const {
        const Certainty fresh = config.certainty();
        Values first, values;
        Certainty::each(fresh, [&](const char*, const double& field) { first.push_back(field); });
        std::size_t i = 0;
        Certainty::each(certainty, [&](const char*, const double& field) {
            if (field != first[i]) {
                bits[i / 64] |= std::uint64_t{1} << (i % 64);
                values.push_back(field);
            }
            ++i;
        });
        return values;
    }
    void read_certainty(Reader& r) {
        std::array<std::uint64_t, 2> bits;
        if (r.left() < sizeof bits || r.left() % 8 != 0) Reader::fail("whole");
        values_.resize((r.left() - sizeof bits) / sizeof(double));
        r.array(values_.data(), values_.size());
        r.array(bits.data(), bits.size());
        std::size_t i = 0, taken = 0;
        Certainty::each(certainty, [&](const char*, double& field) {
            if ((bits[i / 64] >> (i % 64) & 1) != 0 && taken < values_.size()) field = values_[taken++];
            ++i;
        });
        std::size_t ones = 0;
        for (const std::uint64_t word : bits)
            for (int bit = 0; bit < 64; ++bit) ones += word >> bit & 1;
        if (taken != values_.size() || ones != taken || !certainty.sound()) Reader::fail("a model of this bank");
    }

    static bool countable(std::int64_t count) { return count >= 0 && count <= std::int64_t(1) << 62; }

    // A bank has no spaces of features, whose matrices grow later: a matrix over the points has a row for each.
    static bool is_triangle(std::size_t count, int m) { return count == static_cast<std::size_t>(m) * (m + 1) / 2; }

    // the state of the budget, then that of the rule
    template <class L, class F> static void each_field(L& loop, F&& f) {
        std::visit([&](auto& b) { each_packed(b.state, f); }, loop.budget);
        std::visit([&](auto& r) { each_packed(r.state, f); }, loop.rule);
    }

    // The arrays of that state: some by the lengths that were read before, those whose length the points say if there are
    // any (`with_packed`). They are only checked, and not kept, for a model that does not learn.
    void read_arrays(Reader& r, Loop& loop, int m, bool packed, bool learns) {
        std::size_t next = 0;
        bool taken = false;
        each_field(loop, [&](const char*, auto& field) {
            if constexpr (!is_number<std::decay_t<decltype(field)>>) {
                const auto fixed = packed_length(field, m);
                const std::size_t count = fixed ? (packed ? *fixed : 0) : static_cast<std::size_t>(lengths_[next++]);
                taken = taken || fixed;
                if (count > r.left() / sizeof(double) || (fixed && packed && m == 0))
                    Reader::fail("a model of this bank");
                values_.resize(count);
                r.array(values_.data(), count);
                const bool whole =
                    fixed || std::is_same_v<std::decay_t<decltype(field)>, Values> || is_triangle(count, m);
                if (!whole || !fits(field, values_, m)) Reader::fail("a model of this bank");
                if (learns) unpack(field, values_, m);
            }
        });
        if (packed && !taken) Reader::fail("a model of this bank");
    }

    static void read_rows(Reader& r, Rows2& rows, std::size_t m, std::size_t outputs, bool halve, double share) {
        rows.resize(halve ? 2 : outputs);
        for (std::size_t c = 0; c < outputs; ++c) {
            rows[c].resize(m);
            r.array(rows[c].data(), m);
        }
        if (!halve) return;
        rows[1].resize(m);
        for (std::size_t i = 0; i < m; ++i) {
            rows[1][i] = share * rows[0][i];
            rows[0][i] = -rows[1][i];
        }
    }
};

}  // namespace gossamer
