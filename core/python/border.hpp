// How the bindings take the gate of an object (gate.hpp). Three rules, and with them no thread can wait for another that
// waits for it:
//
// 1. No thread waits for a gate while it holds the GIL: a short call tries once, and releases the GIL before it waits.
// 2. While a gate is held no Python object is made, read or given back, so that no collection of garbage, and with it no
//    __del__ or other callback, can run. Arguments are read before, results made after, and copies go between.
// 3. No thread takes a second gate.
#pragma once
#include <nanobind/nanobind.h>

#include <mutex>
#include <shared_mutex>

#include "engine/gate.hpp"

namespace gossamer {

// A short call, such as a single row: the GIL is kept if the gate is free.
template <template <class> class Lock, class Work> auto hold_short(Gate& gate, Work&& work) {
    {
        Lock<Gate> lock(gate, std::try_to_lock);
        if (lock.owns_lock()) return work();
    }
    nanobind::gil_scoped_release release;
    Lock<Gate> lock(gate);
    return work();
}
// A long call: the GIL is released.
template <template <class> class Lock, class Work> auto hold_long(Gate& gate, Work&& work) {
    nanobind::gil_scoped_release release;
    Lock<Gate> lock(gate);
    return work();
}

template <class T, class Work> auto look(const T& self, Work&& work) {
    return hold_short<std::shared_lock>(self.gate, work);
}
template <class T, class Work> auto look_long(const T& self, Work&& work) {
    return hold_long<std::shared_lock>(self.gate, work);
}
template <class T, class Work> auto change(T& self, Work&& work) {
    return hold_short<std::unique_lock>(self.gate, work);
}
template <class T, class Work> auto change_long(T& self, Work&& work) {
    return hold_long<std::unique_lock>(self.gate, work);
}

}  // namespace gossamer
