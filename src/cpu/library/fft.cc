// fft by plans (fft_plan.h), as many lines at a time as a vector has lanes, or one by one.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "cpu/library/bind.h"
#include "cpu/library/fft_infinities.h"
#include "cpu/library/fft_lanes.h"
#include "cpu/library/fft_plan.h"
#include "cpu/library/strided_copy.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::FftType;

// The lines of an array along one dimension.
struct FftLines {
  int64_t length, inner = 1, count = 1;  // inner: the distance of a line's elements

  FftLines(const Dimensions& sizes, int64_t dimension) : length(sizes[dimension]) {
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (d != dimension) count *= sizes[d];
      if (d > dimension) inner *= sizes[d];
    }
  }
  int64_t Start(int64_t line) const { return line / inner * inner * length + line % inner; }
};

// Some lines in the lanes of vectors, and room to transform them.
template <typename R, int64_t lanes>
class LaneBlock {
 public:
  using C = std::complex<R>;
  using Number = FftNumber<R, lanes>;

  LaneBlock(const FftPlan<R, lanes>& plan, int64_t length)
      : plan_(plan), size_(std::max(plan.size(), length)), memory_(2 * size_ * sizeof(Number)) {
    data_ = static_cast<Number*>(memory_.data());
    other_ = data_ + size_;
  }

  // Element i of line l is from(l)(i). Lanes without a line are zeros.
  template <typename From>
  void Load(int64_t length, int64_t lines, const From& from) {
    if (lines < lanes) std::fill_n(data_, length, Number{});
    ForPieces(length, lines, [&](int64_t l, int64_t begin, int64_t end) {
      const auto element = from(l);
      for (int64_t i = begin; i < end; ++i) {
        const C value = element(i);
        data_[i].real[l] = value.real();
        data_[i].imaginary[l] = value.imag();
      }
    });
  }
  // Element i of line l goes to to(l)(i, element).
  template <typename To>
  void Store(int64_t length, int64_t lines, const To& to) const {
    ForPieces(length, lines, [&](int64_t l, int64_t begin, int64_t end) {
      const auto put = to(l);
      for (int64_t i = begin; i < end; ++i) put(i, C(data_[i].real[l], data_[i].imaginary[l]));
    });
  }

  // Lines whose elements are neighbours, the first of each `distance` from that of the line before:
  // a transposition, as the parts of all lines' elements are the rows of the block.
  void LoadLines(const C* first, int64_t distance, int64_t length, int64_t lines) {
    if (lines < lanes) std::fill_n(data_, length, Number{});
    CopyStrided({lines, 2 * length}, {2 * distance, 1}, {1, lanes}, first, data_, sizeof(R));
  }
  void StoreLines(C* first, int64_t distance, int64_t length, int64_t lines) const {
    CopyStrided({lines, 2 * length}, {1, lanes}, {2 * distance, 1}, data_, first, sizeof(R));
  }

  void Transform(int64_t length, bool inverse) {
    if (inverse) ExchangeParts(data_, length, R{1});
    if (plan_.Run(data_, other_) != data_) std::swap(data_, other_);
    if (inverse) ExchangeParts(data_, length, R{1} / static_cast<R>(length));
  }

  // Where a line has infinities (fft_infinities.h), which the first two of its `length` numbers
  // show: transforms them apart. `transform` is what has been done to the elements that `from`
  // gives as for Load; add(element, how) calls how(k, value) for what is to be added to number k.
  template <typename From, typename F, typename Add>
  void SetInfinitiesApart(int64_t length, int64_t elements, int64_t lines, const From& from,
                          const F& transform, const Add& add) {
    if (IsFinite(std::min<int64_t>(length, 2), lines)) return;
    const auto infinite = InfiniteElements<R>(elements, lines, from);
    if (infinite.empty()) return;
    std::vector<bool> is_apart(lines);
    for (const InfiniteElement<R>& element : infinite) is_apart[element.line] = true;
    Load(elements, lines, [&](int64_t l) {
      return [element = from(l), apart = is_apart[l]](int64_t i) {
        return apart ? FiniteParts<R>(element(i)) : C(element(i));
      };
    });
    transform();
    for (const InfiniteElement<R>& element : infinite) {
      add(element, [&](int64_t k, C value) {
        data_[k].real[element.line] += value.real();
        data_[k].imaginary[element.line] += value.imag();
      });
    }
  }

  void ToSpectrumOfReal(int64_t length, const std::vector<C>& roots) {
    SpectrumOfReal(data_, length, roots.data(), other_);
    std::swap(data_, other_);
  }
  void ToPairsOfReal(int64_t length, const std::vector<C>& roots) {
    PairsOfReal(data_, length, roots.data(), other_);
    std::swap(data_, other_);
  }

 private:
  // A cache line of each line at a time.
  template <typename F>
  static void ForPieces(int64_t length, int64_t lines, const F& f) {
    constexpr int64_t kPiece = 8;
    for (int64_t begin = 0; begin < length; begin += kPiece) {
      for (int64_t l = 0; l < lines; ++l) f(l, begin, std::min(length, begin + kPiece));
    }
  }

  bool IsFinite(int64_t length, int64_t lines) const {
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t l = 0; l < lines; ++l) {
        if (!std::isfinite(data_[i].real[l]) || !std::isfinite(data_[i].imaginary[l])) return false;
      }
    }
    return true;
  }

  const FftPlan<R, lanes>& plan_;
  int64_t size_;
  Block memory_;
  Number *data_, *other_;
};

// Transforms of lines, wherever they come from and go to.
template <typename R>
class LineTransform {
 public:
  LineTransform(int64_t length, int64_t lines) : length_(length), lines_(lines) {
    if (lines == 0 || length == 0) return;
    // A lane without a line is lost: all lanes take as long as some lines one by one. Two blocks of
    // the longest take 32 MB, for each thread.
    constexpr int64_t kWorthLanes = kFftLanes<R> / 4, kLongestInLanes = 1 << 17;
    if (lines >= kWorthLanes && length <= kLongestInLanes) {
      wide_ = std::make_unique<FftPlan<R, kFftLanes<R>>>(length);
    } else {
      single_ = std::make_unique<FftPlan<R, 1>>(length);
    }
  }

  // from(line)(i) gives elements, to(line)(i, value) takes them.
  template <typename From, typename To>
  void Run(const CallContext& context, bool inverse, const From& from, const To& to) const {
    ForBlocks(context, length_, [&](auto& block, int64_t first, int64_t count) {
      const auto from_block = [&](int64_t l) { return from(first + l); };
      block.Load(length_, count, from_block);
      block.Transform(length_, inverse);
      SetInfinitiesApart(block, count, inverse, from_block);
      block.Store(length_, count, [&](int64_t l) { return to(first + l); });
    });
  }

  // Of lines one after the other.
  void RunLines(const CallContext& context, bool inverse, const std::complex<R>* in,
                std::complex<R>* out) const {
    ForBlocks(context, length_, [&](auto& block, int64_t first, int64_t count) {
      block.LoadLines(in + first * length_, length_, length_, count);
      block.Transform(length_, inverse);
      SetInfinitiesApart(block, count, inverse, [=, this](int64_t l) {
        return [line = in + (first + l) * length_](int64_t i) { return line[i]; };
      });
      block.StoreLines(out + first * length_, length_, length_, count);
    });
  }

  // run(block, first line, how many), with room for `size` numbers.
  template <typename F>
  void ForBlocks(const CallContext& context, int64_t size, const F& run) const {
    if (wide_) ForBlocksOf(*wide_, context, size, run);
    if (single_) ForBlocksOf(*single_, context, size, run);
  }

 private:
  template <typename Block, typename From>
  void SetInfinitiesApart(Block& block, int64_t lines, bool inverse, const From& from) const {
    block.SetInfinitiesApart(
        length_, length_, lines, from, [&] { block.Transform(length_, inverse); },
        [&](const InfiniteElement<R>& element, const auto& add) {
          ForEachTimesRoot(element.parts, element.place, length_, length_, inverse, add);
        });
  }

  template <int64_t lanes, typename F>
  void ForBlocksOf(const FftPlan<R, lanes>& plan, const CallContext& context, int64_t size,
                   const F& run) const {
    context.threads.ParallelFor(hlo::CeilDivide(lines_, lanes), [&](int64_t i) {
      LaneBlock<R, lanes> block(plan, size);
      run(block, i * lanes, std::min(lanes, lines_ - i * lanes));
    });
  }

  int64_t length_, lines_;
  std::unique_ptr<FftPlan<R, kFftLanes<R>>> wide_;  // one of the two
  std::unique_ptr<FftPlan<R, 1>> single_;
};

// Real lines, and their spectra up to the middle. Neighbours of lines of even length are one
// complex number.
template <typename R>
class RealLineTransform {
 public:
  using C = std::complex<R>;

  RealLineTransform(int64_t length, int64_t lines)
      : length_(length),
        middle_(length / 2),
        whole_(length, IsEven() ? 0 : lines),
        halves_(middle_, IsEven() ? lines : 0) {
    if (!IsEven()) return;
    for (int64_t k = 0; k <= middle_; ++k) {
      roots_.push_back(static_cast<std::complex<R>>(std::polar(
          1.0, -std::numbers::pi * static_cast<double>(k) / static_cast<double>(middle_))));
    }
  }

  void Forward(const CallContext& context, const R* in, C* out) const {
    const int64_t numbers = middle_ + 1;
    if (!IsEven()) {
      return whole_.Run(
          context, false,
          [=, this](int64_t line) {
            return [elements = in + line * length_](int64_t i) { return C(elements[i]); };
          },
          [=](int64_t line) {
            return [=, spectrum = out + line * numbers](int64_t i, C value) {
              if (i < numbers) spectrum[i] = value;
            };
          });
    }
    halves_.ForBlocks(context, numbers, [&](auto& block, int64_t first, int64_t count) {
      const C* pairs = reinterpret_cast<const C*>(in) + first * middle_;
      const auto transform = [&] {
        block.Transform(middle_, false);
        block.ToSpectrumOfReal(middle_, roots_);
      };
      block.LoadLines(pairs, middle_, middle_, count);
      transform();
      block.SetInfinitiesApart(
          numbers, middle_, count,
          [=, this](int64_t l) {
            return [line = pairs + l * middle_](int64_t i) { return line[i]; };
          },
          transform,
          [&](const InfiniteElement<R>& pair, const auto& add) {
            ForEachTimesRoot(C(pair.parts.real()), 2 * pair.place, length_, numbers, false, add);
            ForEachTimesRoot(C(pair.parts.imag()), 2 * pair.place + 1, length_, numbers, false,
                             add);
          });
      block.StoreLines(out + first * numbers, numbers, numbers, count);
    });
  }

  void Inverse(const CallContext& context, const C* in, R* out) const {
    const int64_t numbers = middle_ + 1;
    if (!IsEven()) {
      const auto from = [=, this](int64_t line) {
        return [=, this, spectrum = in + line * numbers](int64_t i) {
          // The spectrum of a real signal: this is real whatever is given.
          if (i == 0) return C(spectrum[i].real());
          return i < numbers ? spectrum[i] : std::conj(spectrum[length_ - i]);
        };
      };
      return whole_.Run(context, true, from, [=, this](int64_t line) {
        return
            [elements = out + line * length_](int64_t i, C value) { elements[i] = value.real(); };
      });
    }
    halves_.ForBlocks(context, numbers, [&](auto& block, int64_t first, int64_t count) {
      const C* spectra = in + first * numbers;
      const auto transform = [&] {
        block.ToPairsOfReal(middle_, roots_);
        block.Transform(middle_, true);
      };
      block.LoadLines(spectra, numbers, numbers, count);
      transform();
      block.SetInfinitiesApart(
          middle_, numbers, count,
          [=, this](int64_t l) {
            return [line = spectra + l * numbers, this](int64_t i) {
              return i == 0 || i == middle_ ? C(line[i].real()) : line[i];
            };
          },
          transform,
          [&](const InfiniteElement<R>& number, const auto& add) {
            ForEachTimesRoot(number.parts, number.place, length_, length_, true,
                             [&](int64_t k, C value) {
                               add(k / 2, k % 2 == 0 ? C(value.real()) : C(0, value.real()));
                             });
          });
      block.StoreLines(reinterpret_cast<C*>(out) + first * middle_, middle_, middle_, count);
    });
  }

 private:
  bool IsEven() const { return length_ % 2 == 0; }

  int64_t length_, middle_;
  LineTransform<R> whole_, halves_;  // of odd lengths, and of even ones
  std::vector<C> roots_;             // exp(-2 pi i k / length)
};

template <typename R>
class FftCall : public LibraryCall {
 public:
  using C = std::complex<R>;

  explicit FftCall(const hlo::Instruction& fft)
      : type_(fft.as<hlo::FftAttributes>().type), input_(fft.operand(0)->shape()) {
    const Dimensions& length = fft.as<hlo::FftAttributes>().length;
    const Dimensions& sizes =
        type_ == FftType::kRfft ? fft.shape().dimensions() : input_.dimensions();
    is_empty_ = fft.shape().num_elements() == 0;
    const auto rank = static_cast<int64_t>(sizes.size());
    const auto count = static_cast<int64_t>(length.size());
    if (IsReal()) {
      const FftLines lines(sizes, rank - 1);
      real_ = std::make_unique<RealLineTransform<R>>(length.back(), lines.count);
    }
    for (int64_t d = rank - (IsReal() ? 2 : 1); d >= rank - count; --d) {
      const FftLines lines(sizes, d);
      complex_.emplace_back(lines, LineTransform<R>(lines.length, lines.count));
    }
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (is_empty_) return;
    switch (type_) {
      case FftType::kFft:
      case FftType::kIfft:
        return Transform(context, static_cast<const C*>(operands[0]), static_cast<C*>(results[0]),
                         type_ == FftType::kIfft);
      case FftType::kRfft: {
        auto* values = static_cast<C*>(results[0]);
        real_->Forward(context, static_cast<const R*>(operands[0]), values);
        return Transform(context, values, values, false);
      }
      case FftType::kIrfft: {
        auto* in = static_cast<const C*>(operands[0]);
        auto* out = static_cast<R*>(results[0]);
        if (complex_.empty()) return real_->Inverse(context, in, out);
        const Block copy(input_.byte_size());
        auto* values = static_cast<C*>(copy.data());
        Transform(context, in, values, true);
        return real_->Inverse(context, values, out);
      }
    }
  }

  std::string Description() const override { return "fft"; }

 private:
  bool IsReal() const { return type_ == FftType::kRfft || type_ == FftType::kIrfft; }

  // Along each dimension; the first of them reads `in`, the others what is there.
  void Transform(const CallContext& context, const C* in, C* values, bool inverse) const {
    for (const auto& [lines, transform] : complex_) {
      const int64_t inner = lines.inner;
      if (inner == 1) {
        transform.RunLines(context, inverse, in, values);
        in = values;
        continue;
      }
      transform.Run(
          context, inverse,
          [&](int64_t line) {
            return [=, line = in + lines.Start(line)](int64_t i) { return line[i * inner]; };
          },
          [&](int64_t line) {
            return [=, line = values + lines.Start(line)](int64_t i, C value) {
              line[i * inner] = value;
            };
          });
      in = values;
    }
  }

  FftType type_;
  hlo::Shape input_;
  bool is_empty_;
  std::vector<std::pair<FftLines, LineTransform<R>>> complex_;  // from the last dimension on
  std::unique_ptr<RealLineTransform<R>> real_;                  // of the last dimension
};

}  // namespace

std::unique_ptr<LibraryCall> BindFft(const hlo::Instruction& instruction) {
  hlo::ElementType real = hlo::RealType(instruction.operand(0)->element_type());
  if (real == hlo::ElementType::kF32) return std::make_unique<FftCall<float>>(instruction);
  if (real == hlo::ElementType::kF64) return std::make_unique<FftCall<double>>(instruction);
  return nullptr;
}

}  // namespace cpu
