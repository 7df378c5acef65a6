// Infinities and NaN in lines that are transformed. By a plan they would make all of a line's
// transform NaN: it multiplies with zeros, and adds what it takes away again. So the few that a
// line may have are transformed by the definition, and added to the transform of the rest.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace cpu {

// What of a number is infinite or NaN, or what is not; zero in the place of the other.
template <typename R>
std::complex<R> InfiniteParts(std::complex<R> x) {
  return {std::isfinite(x.real()) ? R{0} : x.real(), std::isfinite(x.imag()) ? R{0} : x.imag()};
}
template <typename R>
std::complex<R> FiniteParts(std::complex<R> x) {
  return {std::isfinite(x.real()) ? x.real() : R{0}, std::isfinite(x.imag()) ? x.imag() : R{0}};
}

// An element of a line, and what of it is infinite or NaN.
template <typename R>
struct InfiniteElement {
  int64_t line, place;
  std::complex<R> parts;
};

// Of lines 0 to `lines` that have some, but not more than make everything NaN: element i of line l
// is from(l)(i).
template <typename R, typename From>
std::vector<InfiniteElement<R>> InfiniteElements(int64_t length, int64_t lines, const From& from) {
  constexpr size_t kMostOfALine = 16;
  std::vector<InfiniteElement<R>> found;
  for (int64_t l = 0; l < lines; ++l) {
    const auto element = from(l);
    const size_t before = found.size();
    for (int64_t i = 0; i < length && found.size() - before <= kMostOfALine; ++i) {
      const std::complex<R> parts = InfiniteParts<R>(element(i));
      if (parts != std::complex<R>{}) found.push_back({l, i, parts});
    }
    if (found.size() - before > kMostOfALine) found.resize(before);
  }
  return found;
}

// Calls add(k, x * exp(-2 pi i place k / length)) for k from 0 to `count`, or with the conjugate of
// the root; x is infinite or NaN, of which only a factor's sign changes anything, and zero makes
// nothing.
template <typename R, typename Add>
void ForEachTimesRoot(std::complex<R> x, int64_t place, int64_t length, int64_t count, bool inverse,
                      const Add& add) {
  const auto times = [](R part, int sign) { return sign == 0 ? R{0} : sign > 0 ? part : -part; };
  int64_t turn = 0;  // of `length`
  for (int64_t k = 0; k < count; ++k) {
    const int64_t quarters = 4 * turn;
    const bool is_right = quarters < length || quarters > 3 * length;
    const int cosine = quarters == length || quarters == 3 * length ? 0 : is_right ? 1 : -1;
    const int up = turn == 0 || 2 * turn == length ? 0 : 2 * turn < length ? 1 : -1;
    const int sine = inverse ? up : -up;
    add(k, std::complex<R>(times(x.real(), cosine) - times(x.imag(), sine),
                           times(x.real(), sine) + times(x.imag(), cosine)));
    turn += place;
    if (turn >= length) turn -= length;
  }
}

}  // namespace cpu
