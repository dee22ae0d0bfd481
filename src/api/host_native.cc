#include "api/host_native.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "api/host_fft.h"
#include "api/host_linalg.h"
#include "api/host_sort.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Opcode;
using runtime::HostArgument;
using runtime::HostCallable;
using runtime::HostResult;
using tensor::Shape;
using tensor::Type;
using Ints = std::vector<int64_t>;
using Arguments = std::span<const HostArgument>;
using Results = std::span<const HostResult>;

bool is_dense(const Shape& shape) {
  return shape.is_array() && shape.is_static() &&
         (!shape.layout() || shape.layout()->is_row_major());
}

// The operands are the parameters, in order, and all arrays are dense.
bool is_whole_entry(const Instr& root) {
  const auto& parameters = root.parent()->parameters();
  if (parameters.size() != root.operands().size()) return false;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (root.operand(i) != parameters[i] || !is_dense(parameters[i]->shape())) return false;
  if (!root.shape().is_tuple()) return is_dense(root.shape());
  for (const Shape& shape : root.shape().elements())
    if (!is_dense(shape)) return false;
  return true;
}

Ints row_major_strides(const Ints& extents) {
  Ints strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return strides;
}

// --- Scatters. ---

struct Scatter {
  int64_t bytes = 0;          // of an operand element
  Ints batch, batch_strides;  // of the indices, without the vector dimension; in the updates
  Ints index_strides;         // by batch dimension
  int64_t vector_stride = 1;
  Ints indexed;                     // operand dimension, by element of the index vector
  Ints dims, strides;               // of the operand
  Ints box, box_strides, box_dims;  // window: extents, strides in the updates, operand dimensions
  int64_t elements = 0;     // not 0: windows are single elements, index vectors are contiguous
  bool wide_index = false;  // s64, not s32
};

int64_t read_index(const Scatter& s, const void* data, int64_t at) {
  return s.wide_index ? static_cast<const int64_t*>(data)[at]
                      : static_cast<const int32_t*>(data)[at];
}

// Advances to the next point; false: it was the last one.
bool next_point(const Ints& extents, Ints* at) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++(*at)[d] < extents[d]) return true;
    (*at)[d] = 0;
  }
  return false;
}

constexpr int64_t kFarOutside = int64_t{1} << 48;  // outside of any array; sums cannot overflow

// One element per index vector, which is contiguous.
template <typename T, typename Combine>
void scatter_elements(const Scatter& s, Arguments arguments, T* out, Combine combine) {
  const auto* updates = static_cast<const T*>(arguments[2].data);
  const auto parts = static_cast<int64_t>(s.indexed.size());
  for (int64_t e = 0; e < s.elements; ++e) {
    int64_t to = 0;
    bool inside = true;
    for (int64_t v = 0; v < parts; ++v) {
      const auto d = static_cast<size_t>(s.indexed[static_cast<size_t>(v)]);
      const int64_t place = read_index(s, arguments[1].data, e * parts + v);
      inside = inside && static_cast<uint64_t>(place) < static_cast<uint64_t>(s.dims[d]);
      to += inside ? place * s.strides[d] : 0;
    }
    if (inside) out[to] = combine(out[to], updates[e]);
  }
}

template <typename T, typename Combine>
void run_scatter(const Scatter& s, Arguments arguments, Results results, Combine combine) {
  auto* out = static_cast<T*>(results[0].data);
  std::memcpy(out, arguments[0].data, static_cast<size_t>(s.bytes));
  if (s.elements > 0) return scatter_elements(s, arguments, out, combine);
  const auto* updates = static_cast<const T*>(arguments[2].data);
  const size_t inner = s.box.size();
  // Iterates over all but the last dimension of the window.
  const int64_t run = inner > 0 ? s.box.back() : 1;
  const int64_t run_from = inner > 0 ? s.box_strides.back() : 1;
  const int64_t last = inner > 0 ? s.box_dims.back() : -1;
  const int64_t run_to = last >= 0 ? s.strides[static_cast<size_t>(last)] : 1;
  Ints around(s.box.begin(), inner > 0 ? s.box.end() - 1 : s.box.end());
  Ints batch(s.batch.size(), 0), start(s.dims.size()), window(around.size(), 0);
  do {
    int64_t at = 0, from = 0;
    for (size_t d = 0; d < batch.size(); ++d) {
      at += batch[d] * s.index_strides[d];
      from += batch[d] * s.batch_strides[d];
    }
    std::fill(start.begin(), start.end(), 0);
    for (size_t v = 0; v < s.indexed.size(); ++v)
      start[static_cast<size_t>(s.indexed[v])] = std::clamp(
          read_index(s, arguments[1].data, at + static_cast<int64_t>(v) * s.vector_stride),
          -kFarOutside, kFarOutside);
    std::fill(window.begin(), window.end(), 0);
    do {
      int64_t to = 0, source = from;
      bool inside = true;
      Ints& place = start;
      for (size_t w = 0; w < window.size(); ++w) {
        place[static_cast<size_t>(s.box_dims[w])] += window[w];
        source += window[w] * s.box_strides[w];
      }
      int64_t begin = 0, end = run;
      for (size_t d = 0; d < s.dims.size(); ++d) {
        if (static_cast<int64_t>(d) == last) {
          const int64_t p = std::clamp<int64_t>(place[d], -run, s.dims[d]);
          begin = std::max<int64_t>(0, -p);
          end = std::min(run, s.dims[d] - p);
          to += p * s.strides[d];
          continue;
        }
        inside = inside && place[d] >= 0 && place[d] < s.dims[d];
        if (inside) to += place[d] * s.strides[d];
      }
      for (size_t w = 0; w < window.size(); ++w)
        place[static_cast<size_t>(s.box_dims[w])] -= window[w];
      if (!inside) continue;
      for (int64_t i = begin; i < end; ++i)
        out[to + i * run_to] = combine(out[to + i * run_to], updates[source + i * run_from]);
    } while (next_point(around, &window));
  } while (next_point(s.batch, &batch));
}

std::optional<Scatter> scatter_of(const Instr& instr) {
  const auto& attrs = instr.attrs_as<hlo::ScatterAttrs>();
  if (instr.operands().size() != 3 || !attrs.input_batching_dims.empty()) return {};
  const Shape &operand = instr.operand(0)->shape(), &indices = instr.operand(1)->shape();
  const Shape& updates = instr.operand(2)->shape();
  if (operand.elems() == 0 || updates.elems() == 0) return {};
  if (indices.type() != Type::s32 && indices.type() != Type::s64) return {};
  Scatter s;
  s.wide_index = indices.type() == Type::s64;
  s.bytes = operand.bytes();
  s.dims = operand.extents();
  s.strides = row_major_strides(s.dims);
  const Ints index_strides = row_major_strides(indices.extents());
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == attrs.index_vector_dim) {
      s.vector_stride = index_strides[static_cast<size_t>(d)];
      continue;
    }
    s.batch.push_back(indices.dim(d));
    s.index_strides.push_back(index_strides[static_cast<size_t>(d)]);
  }
  s.indexed = attrs.scatter_dims_to_operand_dims;
  const Ints update_strides = row_major_strides(updates.extents());
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const Ints& inside = attrs.update_window_dims;
    const bool is_window = std::find(inside.begin(), inside.end(), d) != inside.end();
    if (!is_window) s.batch_strides.push_back(update_strides[static_cast<size_t>(d)]);
  }
  for (int64_t d : attrs.update_window_dims) {
    s.box.push_back(updates.dim(d));
    s.box_strides.push_back(update_strides[static_cast<size_t>(d)]);
  }
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Ints& gone = attrs.inserted_window_dims;
    if (std::find(gone.begin(), gone.end(), d) == gone.end()) s.box_dims.push_back(d);
  }
  const bool in_piece = s.indexed.size() == 1 || attrs.index_vector_dim == indices.rank() - 1;
  const bool in_order = attrs.index_vector_dim >= indices.rank() - 1;
  if (in_piece && in_order &&
      std::all_of(s.box.begin(), s.box.end(), [](int64_t extent) { return extent == 1; }))
    s.elements = updates.elems();
  return s;
}

// NaN wins, -0 < +0.
template <typename T>
T larger(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

std::optional<HostCallable> native_scatter(const Instr& instr) {
  const std::optional<Scatter> found = scatter_of(instr);
  if (!found) return {};
  const Scatter& s = *found;
  const hlo::Computation& body = *instr.called()[0];
  const Instr& root = *body.root();
  std::optional<HostCallable> call;
  with_type(instr.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    auto make = [&](auto combine) {
      call = [s, combine](Arguments arguments, Results results) -> Status {
        run_scatter<T>(s, arguments, results, combine);
        return {};
      };
    };
    if (&root == body.parameters()[1]) return make([](T, T b) { return b; });
    const auto& operands = root.operands();
    if (operands.size() != 2 || operands[0] == operands[1] || !operands[0]->is(Opcode::parameter) ||
        !operands[1]->is(Opcode::parameter))
      return;
    if constexpr (std::is_floating_point_v<T>) {
      if (root.is(Opcode::add)) make([](T a, T b) { return a + b; });
      if (root.is(Opcode::multiply)) make([](T a, T b) { return a * b; });
      if (root.is(Opcode::maximum)) make([](T a, T b) { return larger(a, b); });
      if (root.is(Opcode::minimum)) make([](T a, T b) { return -larger(-a, -b); });
    } else {
      using U = std::make_unsigned_t<T>;  // unsigned: they wrap
      if (root.is(Opcode::add))
        make([](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
      if (root.is(Opcode::multiply))
        make([](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); });
      if (root.is(Opcode::maximum)) make([](T a, T b) { return std::max(a, b); });
      if (root.is(Opcode::minimum)) make([](T a, T b) { return std::min(a, b); });
    }
  });
  return call;
}

// --- Complex numbers. ---

// Loops with constant strides, which become shuffles of vectors.
#if defined(__GNUC__) && !defined(__clang__)
#define HEDDLE_VECTORS __attribute__((optimize("O3")))
#else
#define HEDDLE_VECTORS
#endif

// Every second number of `in`.
template <typename T>
HEDDLE_VECTORS void take_part(const T* in, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[2 * i];
}

template <typename T>
HEDDLE_VECTORS void join_parts(const T* re, const T* im, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[2 * i] = re[i];
    out[2 * i + 1] = im[i];
  }
}

template <typename T>
HostCallable call_of_parts(Opcode opcode, int64_t count) {
  return [=](Arguments arguments, Results results) -> Status {
    const auto* in = static_cast<const T*>(arguments[0].data);
    auto* out = static_cast<T*>(results[0].data);
    if (opcode == Opcode::complex)
      join_parts(in, static_cast<const T*>(arguments[1].data), out, count);
    else
      take_part(in + (opcode == Opcode::imag ? 1 : 0), out, count);
    return {};
  };
}

// real, imag and complex.
std::optional<HostCallable> native_parts(const Instr& instr) {
  const bool joins = instr.is(Opcode::complex);
  const Type type = joins ? instr.shape().type() : instr.operand(0)->shape().type();
  if (!tensor::is_complex(type)) return {};
  const int64_t count = instr.shape().elems();
  return type == Type::c64 ? call_of_parts<float>(instr.opcode(), count)
                           : call_of_parts<double>(instr.opcode(), count);
}

}  // namespace

std::optional<HostCallable> native_call(const hlo::Module& module) {
  const Instr& root = *module.entry()->root();
  if (!is_whole_entry(root)) return {};
  if (root.is(Opcode::sort)) return native_sort(root);
  if (root.is(Opcode::scatter)) return native_scatter(root);
  if (root.is(Opcode::fft)) return native_fft(root);
  if (root.is(Opcode::real) || root.is(Opcode::imag) || root.is(Opcode::complex))
    return native_parts(root);
  if (root.is(Opcode::cholesky)) return native_cholesky(root);
  if (root.is(Opcode::triangular_solve)) return native_triangular_solve(root);
  return {};
}

}  // namespace heddle::api
