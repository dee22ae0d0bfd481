// fourier_products: Fourier transforms as products of real matrices. short_fourier_products: only
// those that take less time as products than as host calls, for CPUs.
// A transform of n numbers is a product with the n by n matrix of roots of unity. Longer ones are
// split by two factors of n = p·q (Cooley and Tukey): with element j = j1·q + j2 of x, element k =
// k1 + p·k2 of the result is
//   X[k] = sum over j2 of w(n, j2·k1) · w(q, j2·k2) · (sum over j1 of w(p, j1·k1) · x[j])
// so the inner sums are transforms of p along j1, the outer ones transforms of q along j2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "hlo/builder.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::FftAttrs;
using Kind = hlo::FftAttrs::Kind;

// A complex array as two real ones; `im` is null if it is zero.
struct Parts {
  Instr* re = nullptr;
  Instr* im = nullptr;
};

// Lengths above kLongestOfFactors are split if both factors are at least kLeastFactor, lengths
// above kLongest always; lengths above kLongestWhole are not rewritten, nor are inverse transforms
// to more than kLongestReal real numbers, which are one product.
constexpr int64_t kLongestOfFactors = 64, kLeastFactor = 4, kLongest = 256;
constexpr int64_t kLongestWhole = 4096, kLongestReal = 512;

// The largest divisor up to the square root; 1 of primes.
int64_t divisor_of(int64_t n) {
  for (auto p = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); p > 1; --p)
    if (n % p == 0) return p;
  return 1;
}

// Two products of short sums cost less than one of long sums.
bool goes_by_factors(int64_t n) {
  return n > kLongest || (n > kLongestOfFactors && divisor_of(n) >= kLeastFactor);
}

bool has_products(int64_t n) {
  if (!goes_by_factors(n)) return n > 0;
  const int64_t p = divisor_of(n);
  return n <= kLongestWhole && p > 1 && has_products(n / p);  // p is no longer than n / p
}

// cos(2π·k / n), exact for multiples of a quarter turn.
double cosine(int64_t k, int64_t n) {
  k = ((k % n) + n) % n;
  if (4 * k % n == 0) return std::array{1.0, 0.0, -1.0, 0.0}[static_cast<size_t>(4 * k / n)];
  return std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}
double sine(int64_t k, int64_t n) {
  k = ((k % n) + n) % n;
  if (4 * k % n == 0) return std::array{0.0, 1.0, 0.0, -1.0}[static_cast<size_t>(4 * k / n)];
  return std::sin(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

class Transform {
 public:
  Transform(Type type, Builder& b) : type_(type), b_(b) {}

  // The transform along dimension d; its first `count` results become the last dimension. sign: -1
  // forward, 1 inverse.
  Parts along(const Parts& z, int64_t d, int64_t sign, int64_t count) {
    const int64_t n = z.re->shape().dim(d);
    if (goes_by_factors(n)) return first(by_factors(z, d, sign), count);
    const auto cosines = [&](int64_t j, int64_t k) { return cosine(j * k, n); };
    const auto sines = [&](int64_t j, int64_t k) { return double(sign) * sine(j * k, n); };
    const auto less = [&](int64_t j, int64_t k) { return -sines(j, k); };
    // (re + i im)(cos + i sin): one sum over both parts
    Parts result;
    result.re = product(z, d, matrix(n, count, cosines), matrix(n, count, less));
    result.im = product(z, d, matrix(n, count, sines), matrix(n, count, cosines));
    return result;
  }

  // n real numbers from the first n / 2 + 1 results of a symmetric transform.
  Instr* to_real(const Parts& z, int64_t d, int64_t n) {
    const auto weight = [&](int64_t k) {
      return (k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n);
    };
    const int64_t known = z.re->shape().dim(d);
    return product(
        z, d, matrix(known, n, [&](int64_t k, int64_t j) { return weight(k) * cosine(j * k, n); }),
        matrix(known, n, [&](int64_t k, int64_t j) { return -weight(k) * sine(j * k, n); }));
  }

  Parts scaled(const Parts& z, double factor) {
    const auto times = [&](Instr* x) {
      return b_.binary(Opcode::multiply, x, b_.full(x->shape(), factor));
    };
    return {times(z.re), z.im != nullptr ? times(z.im) : nullptr};
  }

  // Moves the last dimension to d.
  Parts moved(const Parts& z, int64_t d) {
    Ints order = counting(z.re->shape().rank() - 1);
    order.insert(order.begin() + d, z.re->shape().rank() - 1);
    return each(z, [&](Instr* x) { return is_counting(order) ? x : b_.transpose(x, order); });
  }

 private:
  static Parts each(const Parts& z, const std::function<Instr*(Instr*)>& function) {
    return {function(z.re), z.im != nullptr ? function(z.im) : nullptr};
  }

  Instr* matrix(int64_t rows, int64_t columns,
                const std::function<double(int64_t, int64_t)>& element) {
    Literal values(Shape::array(type_, {rows, columns}));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) values.set_f64(i * columns + j, element(i, j));
    return b_.constant(std::move(values));
  }

  // The sum over dimension d of re · a + im · c.
  Instr* product(const Parts& z, int64_t d, Instr* a, Instr* c) {
    hlo::DotAttrs attrs;
    attrs.lhs_contracting_dims = {d};
    attrs.rhs_contracting_dims = {0};
    if (z.im == nullptr) return b_.dot(z.re, a, attrs);
    return b_.dot(b_.concatenate({z.re, z.im}, d), b_.concatenate({a, c}, 0), attrs);
  }

  Parts first(const Parts& z, int64_t count) {
    Ints end = z.re->shape().extents();
    if (end.back() == count) return z;
    end.back() = count;
    const Ints start(end.size(), 0);
    return each(z, [&](Instr* x) { return b_.slice(x, start, end, {}); });
  }

  Parts by_factors(const Parts& z, int64_t d, int64_t sign) {
    const Ints extents = z.re->shape().extents();
    const int64_t n = extents[static_cast<size_t>(d)], p = divisor_of(n), q = n / p;
    Ints split = extents;
    split[static_cast<size_t>(d)] = q;
    split.insert(split.begin() + d, p);
    // […, p, q, …] to […, q, …, p]
    Parts inner = along(each(z, [&](Instr* x) { return b_.reshape(x, split); }), d, sign, p);
    inner = turned(inner, d, n, sign);
    // […, p, q]
    const Parts outer = along(inner, d, sign, q);
    const int64_t last = outer.re->shape().rank() - 1;
    Ints order = counting(last + 1), whole;
    std::swap(order[static_cast<size_t>(last)], order[static_cast<size_t>(last - 1)]);
    for (int64_t i = 0; i < last - 1; ++i) whole.push_back(outer.re->shape().dim(i));
    whole.push_back(n);
    return each(outer, [&](Instr* x) { return b_.reshape(b_.transpose(x, order), whole); });
  }

  // Multiplies element [j2, k1] of dimension d and the last one by the twiddle factor w(n, j2·k1).
  Parts turned(const Parts& z, int64_t d, int64_t n, int64_t sign) {
    const Shape& shape = z.re->shape();
    const int64_t last = shape.rank() - 1, q = shape.dim(d), p = shape.dim(last);
    const auto spread = [&](Instr* x) { return b_.broadcast(x, shape.extents(), {d, last}); };
    Instr* cosines = spread(matrix(q, p, [&](int64_t j, int64_t k) { return cosine(j * k, n); }));
    Instr* sines =
        spread(matrix(q, p, [&](int64_t j, int64_t k) { return double(sign) * sine(j * k, n); }));
    const auto times = [&](Instr* x, Instr* y) { return b_.binary(Opcode::multiply, x, y); };
    return {b_.binary(Opcode::subtract, times(z.re, cosines), times(z.im, sines)),
            b_.binary(Opcode::add, times(z.re, sines), times(z.im, cosines))};
  }

  const Type type_;
  Builder& b_;
};

// Static, with lengths whose factors are small.
bool has_products(const Instr& fft) {
  if (!are_static_arrays(&fft) || fft.shape().elems() == 0) return false;
  const auto& attrs = fft.attrs_as<FftAttrs>();
  const Ints& lengths = attrs.fft_length;
  if (attrs.kind == Kind::irfft && lengths.back() > kLongestReal) return false;
  const auto end = lengths.end() - (attrs.kind == Kind::irfft ? 1 : 0);
  return std::all_of(lengths.begin(), end, [](int64_t n) { return has_products(n); });
}

// Nanoseconds of both ways on one thread of Zen 4, measured with 8 to 4096 numbers in 1 to 8192
// rows. Products: multiplications, and where they go by factors numbers moved between the products.
// Host calls: numbers, with the time to separate and join their parts; pocketfft needs longer for
// large prime factors, until it takes a longer transform instead.
constexpr double kProductsPerNs = 45, kByFactorsNs = 5.5, kRealByFactorsNs = 2.5;
constexpr double kCallNs = 450, kCallNumberNs = 2, kCallRealNumberNs = 1.15;
constexpr int64_t kCheapFactor = 14, kDearestFactor = 56, kCallInCache = 512;

int64_t largest_prime_of(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

// Of all products of the transform; `is_real`: its operand has no imaginary part.
double products_ns(const Instr& fft, bool is_real) {
  const auto& attrs = fft.attrs_as<FftAttrs>();
  const auto count = static_cast<int64_t>(attrs.fft_length.size());
  const Shape& shape = attrs.kind == Kind::irfft ? fft.operand(0)->shape() : fft.shape();
  const auto numbers = static_cast<double>(shape.elems());
  double ns = 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    const int64_t n = attrs.fft_length[static_cast<size_t>(i)];
    const bool is_last = i == count - 1, from_real = is_real && is_last;
    const bool to_real = is_last && attrs.kind == Kind::irfft;
    if (goes_by_factors(n) && !to_real) {
      // a real operand has all numbers, its transform about half of them
      const double moved = is_last && attrs.kind == Kind::rfft ? 2 * numbers : numbers;
      ns += moved * (from_real && attrs.kind == Kind::fft ? kRealByFactorsNs : kByFactorsNs);
    } else {
      ns += numbers * static_cast<double>(n) * (from_real || to_real ? 2 : 4) / kProductsPerNs;
    }
  }
  return ns;
}

double host_call_ns(const Instr& fft) {
  const auto& attrs = fft.attrs_as<FftAttrs>();
  const Shape& shape = attrs.kind == Kind::rfft ? fft.operand(0)->shape() : fft.shape();
  const auto numbers = static_cast<double>(shape.elems());
  const bool is_real = attrs.kind == Kind::rfft || attrs.kind == Kind::irfft;
  double ns = kCallNs;
  for (const int64_t n : attrs.fft_length) {
    const int64_t prime = std::clamp(largest_prime_of(n), kCheapFactor, kDearestFactor);
    const double outside_cache = std::max(1.0, std::log2(n) / std::log2(kCallInCache));
    ns += numbers * (is_real ? kCallRealNumberNs : kCallNumberNs) * outside_cache *
          static_cast<double>(prime) / kCheapFactor;
  }
  return ns;
}

// `im` is null for an inverse transform to real numbers.
Parts transformed(const Instr* fft, Parts z, Builder& b) {
  const auto& attrs = fft->attrs_as<FftAttrs>();
  const auto count = static_cast<int64_t>(attrs.fft_length.size());
  const int64_t rank = fft->shape().rank(), last = rank - 1;
  Transform transform(z.re->shape().type(), b);
  if (attrs.kind == Kind::rfft) z = transform.along(z, last, -1, fft->shape().dim(last));
  const bool inverse = attrs.kind == Kind::ifft || attrs.kind == Kind::irfft;
  const bool to_or_from_real = attrs.kind == Kind::rfft || attrs.kind == Kind::irfft;
  double factor = 1;
  for (int64_t i = count - 1 - (to_or_from_real ? 1 : 0); i >= 0; --i) {
    const int64_t d = rank - count + i;
    const int64_t n = attrs.fft_length[static_cast<size_t>(i)];
    if (inverse) factor /= static_cast<double>(n);
    z = transform.moved(transform.along(z, d, inverse ? 1 : -1, n), d);
  }
  if (factor != 1) z = transform.scaled(z, factor);
  if (attrs.kind == Kind::irfft) return {transform.to_real(z, last, attrs.fft_length.back())};
  return z;
}

bool is_complex(const Instr* x) {
  return x->shape().is_array() && tensor::is_complex(x->shape().type());
}

// The parts if they are already separate (split_complex); null otherwise.
Parts parts_of(Instr* x) {
  if (!is_complex(x)) return {x, nullptr};
  if (!x->is(Opcode::complex)) return {};
  return {x->operand(0), is_splat(x->operand(1), 0) ? nullptr : x->operand(1)};
}

// Whether a reader uses the parts. Separating and joining complex numbers costs more than
// transforming them interleaved.
bool gives_parts(const Instr* fft) {
  const auto takes_parts = [](const Instr* user) {
    return user->is(Opcode::real) || user->is(Opcode::imag) || user->is(Opcode::fft);
  };
  return !is_complex(fft) || std::any_of(fft->users().begin(), fft->users().end(), takes_parts);
}

bool rewrite(hlo::Module& module, const PassContext& context, std::string_view pass,
             bool only_cheaper) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    const std::vector<Instr*> all = computation->instrs();
    for (Instr* fft : all) {
      if (!fft->is(Opcode::fft) || !has_products(*fft) || !gives_parts(fft)) continue;
      const Parts z = parts_of(fft->operand(0));
      if (z.re == nullptr) continue;
      if (only_cheaper && products_ns(*fft, z.im == nullptr) > host_call_ns(*fft)) continue;
      if (!context.allow(pass, "product")) continue;
      Parts made = transformed(fft, z, b);
      if (made.im == nullptr && is_complex(fft)) made.im = b.full(made.re->shape(), 0);
      computation->replace_all_uses(
          fft, is_complex(fft) ? b.make(Opcode::complex, {made.re, made.im}) : made.re);
      context.note(fmt::format("{}: Fourier transforms are products (rounding differs)", pass));
      changed = true;
    }
    b.check();
    if (changed) computation->remove_dead();
  }
  return changed;
}

}  // namespace

Result<bool> fourier_products(hlo::Module& module, const PassContext& context) {
  return rewrite(module, context, "fourier_products", false);
}

Result<bool> short_fourier_products(hlo::Module& module, const PassContext& context) {
  return rewrite(module, context, "short_fourier_products", true);
}

}  // namespace heddle::opt
