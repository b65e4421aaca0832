// The border between Python and the pixel bank. Locks: border.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "python/arrays.hpp"
#include "python/border.hpp"
#include "video/video.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gossamer;

namespace {

using Frame = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::device::cpu>;
using Mask = MatrixOut<std::uint8_t>;
using Image = Dense<std::uint8_t, 3>;
using Scores = MatrixOut<float>;
using Options = nb::typed<nb::dict, nb::str, double>;

std::invalid_argument wrong(const std::string& name, const std::string& rule) {
    return std::invalid_argument("The '" + name + "' entry of a PixelBank's state must be " + rule + ".");
}

// every array of a state, by name, with the number of its entries: -1 for the light's, which is 0 before the first frame
template <class Bank, class F> void each_array(Bank& bank, F&& f) {
    const auto light =
        static_cast<std::ptrdiff_t>(bank.frames == 0 || !bank.options.light ? 0 : bank.light.cells() * bank.channels);
    const auto size = [](const auto& v) { return static_cast<std::ptrdiff_t>(v.size()); };
    f("slots", bank.slots, size(bank.slots));
    f("used", bank.used, size(bank.used));
    f("scales", bank.scales, size(bank.scales));
    f("margins", bank.margins, size(bank.margins));
    f("spreads", bank.spreads, size(bank.spreads));
    f("before", bank.before, size(bank.before));
    f("reference", bank.light.reference, light);
    f("busy", bank.light.busy, size(bank.light.busy));
    f("usual", bank.alarms.usual, size(bank.alarms.usual));
    f("levels", bank.alarms.levels, size(bank.alarms.levels));
    f("alarmed", bank.alarms.on, size(bank.alarms.on));
}

// a subtractor that holds no share of alarms has none of these, as before there were any
bool is_of_alarms(const std::string& name) { return name == "usual" || name == "levels" || name == "alarmed"; }

State state_of(const PixelBank& bank) {
    using Array =
        std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<float>, std::vector<double>>;
    std::vector<std::pair<const char*, Array>> arrays;
    std::vector<double> sketch;
    const long long frames = look_long(bank, [&] {
        each_array(bank, [&](const char* name, const auto& values, std::ptrdiff_t) {
            if (!(is_of_alarms(name) && values.empty())) arrays.emplace_back(name, values);
        });
        if (bank.alarms.held())
            Sketch::each(bank.alarms.sketch, [&](const char*, const double& number) { sketch.push_back(number); });
        return bank.frames;
    });
    State state;
    state["frames"] = frames;
    if (!sketch.empty()) state["sketch"] = array(std::move(sketch));
    for (auto& [name, values] : arrays)
        std::visit([&, key = name](auto& kept) { state[key] = array(std::move(kept)); }, values);
    return state;
}

// all of it is checked before any of it is taken
void restore(PixelBank& bank, const State& state) {
    PixelBank made(bank.height, bank.width, bank.channels, bank.options, 1);
    made.frames = nb::cast<long long>(state["frames"]);
    if (made.frames < 0) throw wrong("frames", "an int in [0, inf)");
    each_array(made, [&](const char* name, auto& values, std::ptrdiff_t size) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        Vector<T> a;
        if (is_of_alarms(name) && size == 0) return;
        if (!state.contains(name) || !nb::try_cast(state[name], a, false) ||
            static_cast<std::ptrdiff_t>(a.size()) != size)
            throw wrong(name, "an array of " + std::to_string(size) + " numbers");
        values.assign(a.data(), a.data() + a.size());
    });
    if (made.alarms.held()) {
        std::size_t count = 0;
        Vector<double> numbers;
        Sketch::each(made.alarms.sketch, [&](const char*, double&) { ++count; });
        if (!state.contains("sketch") || !nb::try_cast(state["sketch"], numbers, false) || numbers.size() != count)
            throw wrong("sketch", "an array of " + std::to_string(count) + " numbers");
        count = 0;
        Sketch::each(made.alarms.sketch, [&](const char*, double& number) { number = numbers.data()[count++]; });
        if (!made.alarms.sound()) throw wrong("levels", "with 'usual', 'alarmed' and 'sketch' what learning can make");
    }
    for (const std::uint8_t n : made.used)
        if (n > made.options.budget) throw wrong("used", "at most the budget");
    for (const double s : made.scales)
        if (!(s > 0 && s <= 1)) throw wrong("scales", "in (0, 1]");
    change_long(bank, [&] {
        bank.frames = made.frames;
        bank.slots.swap(made.slots), bank.used.swap(made.used), bank.scales.swap(made.scales);
        bank.margins.swap(made.margins), bank.spreads.swap(made.spreads), bank.before.swap(made.before);
        bank.light = made.light;
        bank.alarms = made.alarms;
        bank.restored();
    });
}

VideoOptions options_of(const Options& d) {
    VideoOptions o;
    std::size_t taken = 0;
    const auto take = [&](const char* name, auto& field) {
        if (!d.contains(name)) return;
        const double value = nb::cast<double>(d[name]);
        if (std::is_integral_v<std::decay_t<decltype(field)>> && !(std::abs(value) <= 1e9))
            throw std::invalid_argument("The options of a PixelBank must be in their ranges.");
        field = static_cast<std::decay_t<decltype(field)>>(value);
        ++taken;
    };
    take("budget", o.budget), take("implicit", o.implicit), take("keep", o.keep), take("step", o.step);
    take("level_rate", o.level_rate), take("margin", o.margin), take("nu", o.nu), take("width", o.width);
    take("spread", o.spread), take("widest", o.widest), take("merge", o.merge), take("cap", o.cap);
    take("known", o.known), take("haste", o.haste), take("chroma", o.chroma), take("every", o.every);
    take("warm", o.warm), take("light", o.light), take("guard", o.guard), take("threshold", o.threshold);
    take("radius", o.radius), take("shadows", o.shadows), take("alarms", o.alarms);
    if (taken != d.size()) throw std::invalid_argument("The options of a PixelBank must be known ones.");
    return o;
}

void expect(bool fits, const char* name) {
    if (!fits) throw std::invalid_argument(std::string("The '") + name + "' array must have the shape of the bank.");
}

// a row of pixels is dense; rows may lie apart
void expect(const PixelBank& bank, const Frame& frame) {
    expect(static_cast<int>(frame.shape(0)) == bank.height && static_cast<int>(frame.shape(1)) == bank.width &&
               static_cast<int>(frame.shape(2)) == bank.channels && (frame.stride(2) == 1 || bank.channels == 1) &&
               (frame.stride(1) == bank.channels || bank.width == 1),
           "frame");
}
template <class A> void expect_plane(const PixelBank& bank, const A& a) {
    expect(static_cast<int>(a.shape(0)) == bank.height && static_cast<int>(a.shape(1)) == bank.width, "out");
}

}  // namespace

void bind_video(nb::module_& m) {
    nb::class_<PixelBank>(m, "PixelBank", "One novelty learner per pixel.")
        .def(
            "__init__",
            [](PixelBank* self, int height, int width, int channels, const Options& options, int threads) {
                new (self) PixelBank(height, width, channels, options_of(options), threads);
            },
            "height"_a, "width"_a, "channels"_a, "options"_a, "threads"_a)
        .def(
            "apply",
            [](PixelBank& self, Frame frame, double rate, Mask out) {
                expect(self, frame), expect_plane(self, out);
                change_long(self, [&] { self.apply(frame.data(), frame.stride(0), rate, out.data()); });
            },
            "frame"_a, "rate"_a, "out"_a)
        .def(
            "score",
            [](PixelBank& self, Frame frame, Scores out) {
                expect(self, frame), expect_plane(self, out);
                change_long(self, [&] { self.score(frame.data(), frame.stride(0), out.data()); });
            },
            "frame"_a, "out"_a)
        .def(
            "p_values",
            [](PixelBank& self, Frame frame, Scores out) {
                expect(self, frame), expect_plane(self, out);
                change_long(self, [&] { self.p_values(frame.data(), frame.stride(0), out.data()); });
            },
            "frame"_a, "out"_a)
        .def(
            "background",
            [](const PixelBank& self, Image out) {
                expect_plane(self, out), expect(static_cast<int>(out.shape(2)) == self.channels, "out");
                look_long(self, [&] { self.background(out.data()); });
            },
            "out"_a)
        .def(
            "compensated",
            [](PixelBank& self, Frame frame, Image out) {
                expect(self, frame), expect_plane(self, out);
                expect(static_cast<int>(out.shape(2)) == self.channels, "out");
                change_long(self, [&] { self.compensate(frame.data(), frame.stride(0), out.data()); });
            },
            "frame"_a, "out"_a)
        .def("state", &state_of)
        .def("restore", &restore, "state"_a)
        .def_prop_ro("frames", [](const PixelBank& self) { return look(self, [&] { return self.frames; }); });
}
