// dot, scaled-dot and ragged-dot.
#include <algorithm>

#include "interp/evaluator.h"
#include "interp/products.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Ints free_dims(int64_t rank, const Ints& a, const Ints& b, const Ints& c = {}) {
  Ints result;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(a, d) && !contains(b, d) && !contains(c, d)) result.push_back(d);
  }
  return result;
}

Ints joined(std::initializer_list<Ints> lists) {
  Ints result;
  for (const Ints& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

int64_t extent_of(const Literal& x, const Ints& dims) {
  int64_t result = 1;
  for (int64_t d : dims) result *= x.shape().dim(d);
  return result;
}

Ints identity_order(int64_t rank) { return free_dims(rank, {}, {}); }

// c[m,n] += a[m,k] * b[k,n] for k in [k_begin, k_end), in ascending order of k.
template <typename T>
void add_matmul(const T* a, const T* b, int64_t k_begin, int64_t k_end, int64_t m_count, int64_t k,
                int64_t n, T* c) {
  for (int64_t m = 0; m < m_count; ++m) {
    const T* row = a + m * k;
    T* out = c + m * n;
    if (n == 1) {  // the same sum, without an inner loop of one element
      T sum = *out;
      for (int64_t i = k_begin; i < k_end; ++i) sum += row[i] * b[i];
      *out = sum;
      continue;
    }
    for (int64_t i = k_begin; i < k_end; ++i) add_product(row[i], b + i * n, n, out);
  }
}

// Operand x times its scales: one for each block of elements.
Result<Literal> scaled(Evaluator& e, const Literal& x, const Literal& scale) {
  if (scale.shape().rank() != x.shape().rank()) {  // a scalar: unscaled
    if (!scale.shape().is_scalar())
      return user_error("scales {} of {}", tensor::to_string(scale.shape()),
                        tensor::to_string(x.shape()));
  }
  Shape shape = x.shape();
  shape.set_type(e.held(Type::f32));
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  const Ints dims = x.shape().extents(), blocks = scale.shape().extents();
  const Ints strides = row_major_strides(blocks);
  void* data = out.mutable_data();
  int64_t i = 0;
  for (Walk walk(dims); !walk.done(); walk.next(), ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < blocks.size(); ++d)
      place += walk[d] / (dims[d] / std::max<int64_t>(blocks[d], 1)) * strides[d];
    Cell cell{.f = load_cell(x, i).f * load_cell(scale, place).f};
    store_cells(out.type(), data, i, 1, &cell);
  }
  return out;
}

Result<Literal> dot_of(Evaluator& e, const Instr& instr, const hlo::DotAttrs& attrs,
                       const Literal& lhs, const Literal& rhs) {
  const Ints lhs_free =
      free_dims(lhs.shape().rank(), attrs.lhs_batch_dims, attrs.lhs_contracting_dims);
  const Ints rhs_free =
      free_dims(rhs.shape().rank(), attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  const int64_t batch = extent_of(lhs, attrs.lhs_batch_dims);
  const int64_t k = extent_of(lhs, attrs.lhs_contracting_dims);
  const int64_t m = extent_of(lhs, lhs_free), n = extent_of(rhs, rhs_free);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  with_accumulator(accumulator_of(lhs.type(), rhs.type(), out.type()), [&]<typename T>(T) {
    const auto a = values_in_order<T>(
        lhs, joined({attrs.lhs_batch_dims, lhs_free, attrs.lhs_contracting_dims}));
    const auto b = values_in_order<T>(
        rhs, joined({attrs.rhs_batch_dims, attrs.rhs_contracting_dims, rhs_free}));
    std::vector<T> c(static_cast<size_t>(out.elems()));
    for (int64_t i = 0; i < batch; ++i)
      add_matmul(a.data() + i * m * k, b.data() + i * k * n, 0, k, m, k, n, c.data() + i * m * n);
    put_in_order(out, identity_order(out.shape().rank()), c);
  });
  return out;
}

// The group of each position along the ragged dimension, for each position of the dimensions
// outside it; -1 after the last group.
class Groups {
 public:
  Groups(const Literal& sizes, int64_t outer, int64_t ragged) : ragged_(ragged) {
    count_ = sizes.shape().dims().back().size;
    const bool shared = sizes.shape().rank() == 1;
    groups_.assign(static_cast<size_t>(outer * ragged), -1);
    for (int64_t o = 0; o < outer; ++o) {
      int64_t place = 0;
      for (int64_t g = 0; g < count_; ++g) {
        int64_t size = std::max<int64_t>(index_at(sizes, shared ? g : o * count_ + g), 0);
        for (; size > 0 && place < ragged; --size, ++place)
          groups_[static_cast<size_t>(o * ragged + place)] = g;
      }
    }
  }
  int64_t count() const { return count_; }
  int64_t at(int64_t outer, int64_t place) const {
    return groups_[static_cast<size_t>(outer * ragged_ + place)];
  }

 private:
  int64_t ragged_, count_;
  std::vector<int64_t> groups_;
};

// The dimensions of `list` merged: extents before, of and after the ragged one.
struct Split {
  int64_t before = 1, ragged = 1, after = 1;
  Split(const Literal& x, const Ints& list, int64_t dimension) {
    bool seen = false;
    for (int64_t d : list) {
      const int64_t extent = x.shape().dim(d);
      (d == dimension ? ragged : seen ? after : before) *= extent;
      seen = seen || d == dimension;
    }
  }
};

// The roles of the dimensions of a ragged dot, and its extents.
struct Ragged {
  Ragged(const hlo::RaggedDotAttrs& attrs, const Literal& lhs, const Literal& rhs)
      : dims(attrs.dot),
        dimension(attrs.lhs_ragged_dims[0]),
        lhs_free(free_dims(lhs.shape().rank(), dims.lhs_batch_dims, dims.lhs_contracting_dims)),
        rhs_free(free_dims(rhs.shape().rank(), dims.rhs_batch_dims, dims.rhs_contracting_dims,
                           attrs.rhs_group_dims)),
        batch(extent_of(lhs, dims.lhs_batch_dims)),
        m(extent_of(lhs, lhs_free)),
        k(extent_of(lhs, dims.lhs_contracting_dims)),
        n(extent_of(rhs, rhs_free)),
        in_batch(contains(dims.lhs_batch_dims, dimension)),
        in_sum(contains(dims.lhs_contracting_dims, dimension)),
        split(lhs,
              in_batch ? dims.lhs_batch_dims
              : in_sum ? dims.lhs_contracting_dims
                       : lhs_free,
              dimension) {}
  const hlo::DotAttrs& dims;
  int64_t dimension;
  Ints lhs_free, rhs_free;
  int64_t batch, m, k, n;
  bool in_batch, in_sum;  // else it is a free dimension
  Split split;

  int64_t group(const Groups& groups, int64_t b, int64_t i) const {
    const int64_t before = i / (split.ragged * split.after);
    const int64_t place = i / split.after % split.ragged;
    return groups.at(in_batch ? before : b * split.before + before, place);
  }
};

}  // namespace

Result<Literal> eval_dot(Evaluator& e, const Instr& instr, Operands& operands) {
  return dot_of(e, instr, instr.attrs_as<hlo::DotAttrs>(), operands[0], operands[1]);
}

Result<Literal> eval_scaled_dot(Evaluator& e, const Instr& instr, Operands& operands) {
  for (size_t i = 2; i < operands.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(operands[i - 2], scaled(e, operands[i - 2], operands[i]));
  }
  return dot_of(e, instr, instr.attrs_as<hlo::DotAttrs>(), operands[0], operands[1]);
}

// A row m (or a batch, or a term k of the sum) belongs to a group; with a free ragged dimension the
// group selects the right-hand matrix, with a contracting one the result. Positions after the last
// group give zeros.
Result<Literal> eval_ragged_dot(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::RaggedDotAttrs>();
  const Literal &lhs = operands[0], &rhs = operands[1];
  const Ragged r(attrs, lhs, rhs);
  const Groups groups(operands[2], r.in_batch ? r.split.before : r.batch * r.split.before,
                      r.split.ragged);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  with_accumulator(accumulator_of(lhs.type(), rhs.type(), out.type()), [&]<typename T>(T) {
    const auto a = values_in_order<T>(
        lhs, joined({r.dims.lhs_batch_dims, r.lhs_free, r.dims.lhs_contracting_dims}));
    const auto b = values_in_order<T>(rhs, joined({attrs.rhs_group_dims, r.dims.rhs_batch_dims,
                                                   r.dims.rhs_contracting_dims, r.rhs_free}));
    std::vector<T> c(static_cast<size_t>(out.elems()));
    for (int64_t i = 0; i < r.batch; ++i) {
      for (int64_t m = 0; m < r.m; ++m) {
        const T* row = a.data() + (i * r.m + m) * r.k;
        for (int64_t k = 0; k < r.k; ++k) {
          const int64_t g = r.group(groups, i, r.in_batch ? i : r.in_sum ? k : m);
          if (g < 0) continue;
          const int64_t matrix = attrs.rhs_group_dims.empty() ? i : g * r.batch + i;
          const int64_t result = r.in_sum ? g * r.batch + i : i;
          add_product(row[k], b.data() + (matrix * r.k + k) * r.n, r.n,
                      c.data() + (result * r.m + m) * r.n);
        }
      }
    }
    put_in_order(out, identity_order(out.shape().rank()), c);
  });
  return out;
}

}  // namespace heddle::interp
