// Memory that grows: what std::vector does for plain values, but neither zeroed first nor copied where the
// allocator can enlarge it in place.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace bothost::sqlite {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { std::free(data_); }

  void push(T value) {
    if (size_ == capacity_) grow(1);
    data_[size_++] = value;
  }

  void append(const T* values, std::size_t count) {
    if (!count) return;
    if (count > capacity_ - size_) grow(count);
    std::memcpy(data_ + size_, values, count * sizeof(T));
    size_ += count;
  }

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] T& back() { return data_[size_ - 1]; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void grow(std::size_t more) {
    const std::size_t wanted = std::max(size_ + more, std::max<std::size_t>(64, 2 * capacity_));
    auto* moved = static_cast<T*>(std::realloc(data_, wanted * sizeof(T)));
    if (!moved) throw std::bad_alloc();
    data_ = moved;
    capacity_ = wanted;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace bothost::sqlite
