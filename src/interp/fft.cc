// fft, ifft, rfft and irfft over the last one to three dimensions, in c128.
#include <bit>
#include <cmath>
#include <numbers>

#include "interp/evaluator.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

// exp(-2 pi i k / n): the forward kernel. Quarter turns are exact.
Complex root_of_unity(int64_t k, int64_t n) {
  constexpr Complex kQuarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  k %= n;
  if (k * 4 % n == 0) return kQuarters[k * 4 / n];
  const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// A forward transform of one length, with its roots.
class Transform {
 public:
  explicit Transform(int64_t n) : n_(n) {
    const auto size = static_cast<uint64_t>(n);
    // By definition for short lengths; Bluestein's convolution for long ones that are not powers of
    // two.
    if (!std::has_single_bit(size) && n > 128) {
      chirp_ = chirp();
      inner_ = std::make_unique<Transform>(static_cast<int64_t>(std::bit_ceil(2 * size - 1)));
      filter_.resize(static_cast<size_t>(inner_->n_));
      for (int64_t k = 0; k < n; ++k) {
        filter_[static_cast<size_t>(k)] = std::conj(chirp_[static_cast<size_t>(k)]);
        if (k > 0) filter_[static_cast<size_t>(inner_->n_ - k)] = filter_[static_cast<size_t>(k)];
      }
      inner_->forward(filter_.data());
      return;
    }
    for (int64_t k = 0; k < n; ++k) roots_.push_back(root_of_unity(k, n));
  }

  void forward(Complex* x) const {
    if (inner_ != nullptr) return bluestein(x);
    if (std::has_single_bit(static_cast<uint64_t>(n_))) return power_of_two(x);
    std::vector<Complex> result(static_cast<size_t>(n_));
    for (int64_t k = 0; k < n_; ++k) {
      for (int64_t j = 0; j < n_; ++j)
        result[static_cast<size_t>(k)] += x[j] * roots_[static_cast<size_t>(j * k % n_)];
    }
    std::copy(result.begin(), result.end(), x);
  }
  // Includes the factor 1/n.
  void inverse(Complex* x) const {
    for (int64_t i = 0; i < n_; ++i) x[i] = {x[i].real(), 0 - x[i].imag()};
    forward(x);
    const auto n = static_cast<double>(n_);
    for (int64_t i = 0; i < n_; ++i) x[i] = {x[i].real() / n, (0 - x[i].imag()) / n};
  }

 private:
  void power_of_two(Complex* x) const {
    const int bits = std::countr_zero(static_cast<uint64_t>(n_));
    for (int64_t i = 0; i < n_; ++i) {
      int64_t reversed = 0;
      for (int b = 0; b < bits; ++b) reversed |= (i >> b & 1) << (bits - 1 - b);
      if (i < reversed) std::swap(x[i], x[reversed]);
    }
    for (int64_t half = 1; half < n_; half *= 2) {
      for (int64_t begin = 0; begin < n_; begin += 2 * half) {
        for (int64_t k = 0; k < half; ++k) {
          const Complex odd =
              roots_[static_cast<size_t>(k * (n_ / (2 * half)))] * x[begin + half + k];
          x[begin + half + k] = x[begin + k] - odd;
          x[begin + k] += odd;
        }
      }
    }
  }

  // exp(-pi i k^2 / n); k^2 is taken modulo 2n to keep the angle exact.
  std::vector<Complex> chirp() const {
    std::vector<Complex> result;
    for (int64_t k = 0; k < n_; ++k) {
      const auto square = static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k);
      result.push_back(
          root_of_unity(static_cast<int64_t>(square % (2 * static_cast<uint64_t>(n_))), 2 * n_));
    }
    return result;
  }

  // jk = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with the chirp.
  void bluestein(Complex* x) const {
    std::vector<Complex> y(filter_.size());
    for (int64_t k = 0; k < n_; ++k)
      y[static_cast<size_t>(k)] = x[k] * chirp_[static_cast<size_t>(k)];
    inner_->forward(y.data());
    for (size_t k = 0; k < y.size(); ++k) y[k] *= filter_[k];
    inner_->inverse(y.data());
    for (int64_t k = 0; k < n_; ++k)
      x[k] = y[static_cast<size_t>(k)] * chirp_[static_cast<size_t>(k)];
  }

  int64_t n_;
  std::vector<Complex> roots_, chirp_, filter_;
  std::unique_ptr<Transform> inner_;
};

// Transforms every line of `values`, an array of extents `dims`, along `axis`.
void transform_axis(std::vector<Complex>& values, const Ints& dims, size_t axis, bool inverse) {
  const Ints strides = row_major_strides(dims);
  const int64_t n = dims[axis], step = strides[axis];
  const Transform transform(n);
  Ints lines = dims;
  lines[axis] = 1;
  std::vector<Complex> line(static_cast<size_t>(n));
  for (Walk walk(lines); !walk.done(); walk.next()) {
    Complex* at = values.data() + walk.offset(strides);
    for (int64_t i = 0; i < n; ++i) line[static_cast<size_t>(i)] = at[i * step];
    inverse ? transform.inverse(line.data()) : transform.forward(line.data());
    for (int64_t i = 0; i < n; ++i) at[i * step] = line[static_cast<size_t>(i)];
  }
}

// Rows of the last dimension truncated to, or completed from, the first half of a Hermitian
// spectrum.
std::vector<Complex> first_half(const std::vector<Complex>& values, int64_t n) {
  const int64_t half = n / 2 + 1, rows = static_cast<int64_t>(values.size()) / n;
  std::vector<Complex> result;
  for (int64_t row = 0; row < rows; ++row)
    result.insert(result.end(), values.begin() + row * n, values.begin() + row * n + half);
  return result;
}

std::vector<Complex> completed(const std::vector<Complex>& values, int64_t n) {
  const int64_t half = n / 2 + 1, rows = static_cast<int64_t>(values.size()) / half;
  std::vector<Complex> result;
  for (int64_t row = 0; row < rows; ++row) {
    const Complex* x = values.data() + row * half;
    for (int64_t k = 0; k < n; ++k) result.push_back(k < half ? x[k] : std::conj(x[n - k]));
    // A real signal's mean and Nyquist component are real.
    Complex* out = result.data() + row * n;
    out[0] = out[0].real();
    if (n % 2 == 0) out[n / 2] = out[n / 2].real();
  }
  return result;
}

}  // namespace

Result<Literal> eval_fft(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::FftAttrs>();
  using Kind = hlo::FftAttrs::Kind;
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  if (out.elems() == 0 || operands[0].elems() == 0) return out;
  Ints dims = operands[0].shape().extents();
  const size_t last = dims.size() - 1, first = dims.size() - attrs.fft_length.size();
  std::vector<Complex> values = values_as<Complex>(operands[0]);
  const bool inverse = attrs.kind == Kind::ifft || attrs.kind == Kind::irfft;
  if (attrs.kind == Kind::rfft) {
    transform_axis(values, dims, last, false);
    values = first_half(values, dims[last]);
    dims[last] = dims[last] / 2 + 1;
  }
  const bool half = attrs.kind == Kind::rfft || attrs.kind == Kind::irfft;
  for (size_t axis = first; axis < (half ? last : last + 1); ++axis)
    transform_axis(values, dims, axis, inverse);
  if (attrs.kind == Kind::irfft) {
    dims[last] = attrs.fft_length.back();
    values = completed(values, dims[last]);
    transform_axis(values, dims, last, true);
    std::vector<double> real(values.size());
    for (size_t i = 0; i < values.size(); ++i) real[i] = values[i].real();
    set_values(out, real);
  } else {
    set_values(out, values);
  }
  return out;
}

}  // namespace heddle::interp
