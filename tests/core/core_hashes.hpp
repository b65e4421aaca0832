// A line for every run with a hash of its results, if asked for: the same on every machine with fused multiply-add.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace gossamer {

struct Hashes {
    bool on = false;
    int count = 0;

    // FNV-1a of the bytes
    template <class Values> void tell(const std::string& name, const Values& values) {
        if (!on) return;
        std::uint64_t hash = 0xcbf29ce484222325u;
        const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
        for (std::size_t i = 0; i < values.size() * sizeof(values[0]); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
        std::printf("%016llx %d %s\n", static_cast<unsigned long long>(hash), ++count, name.c_str());
    }
};

inline Hashes hashes;

}  // namespace gossamer
