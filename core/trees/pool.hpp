// Memory for many small blocks of one size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gossamer {

// Numbered blocks of one size that never move: a head and doubles behind it. Chunk k has 2^k of them.
template <class Head> class Pool {
public:
    explicit Pool(std::size_t doubles) : stride_((sizeof(Head) + doubles * sizeof(double) + 63) / 64 * 64) {}

    Head& operator[](int i) const {
        const int k = 31 - __builtin_clz(static_cast<unsigned>(i + 1));
        return *reinterpret_cast<Head*>(chunks_[k].get() + static_cast<std::size_t>(i + 1 - (1 << k)) * stride_);
    }

    // reserve room for this many more blocks, so that take() cannot fail
    void reserve(int more) {
        while (made_ + more > room() + static_cast<int>(free_.size()))
            chunks_.emplace_back(static_cast<char*>(raw(stride_ << chunks_.size())));
        if (free_.capacity() < static_cast<std::size_t>(room())) free_.reserve(room());
    }
    int take() {
        int i = made_;
        if (free_.empty()) {
            ++made_;
        } else {
            i = free_.back();
            free_.pop_back();
        }
        std::memset(static_cast<void*>(&(*this)[i]), 0, stride_);
        return i;
    }
    void give_back(int i) { free_.push_back(i); }

private:
    static constexpr std::size_t page = std::size_t(2) << 20;
    struct Free {
        void operator()(char* p) const { std::free(p); }
    };
    // Blocks are visited at random: in large pages, where the system has them, their addresses are found sooner.
    static void* raw(std::size_t bytes) {
        const std::size_t align = bytes >= 2 * page ? page : 64;
        void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
        if (p == nullptr) throw std::bad_alloc();
#ifdef __linux__
        if (align == page) madvise(p, bytes, MADV_HUGEPAGE);
#endif
        return p;
    }
    int room() const { return static_cast<int>((std::int64_t(1) << chunks_.size()) - 1); }

    std::size_t stride_;
    std::vector<std::unique_ptr<char, Free>> chunks_;
    std::vector<int> free_;
    int made_ = 0;
};

}  // namespace gossamer
