// sort and top-k.
#include <algorithm>
#include <numeric>

#include "interp/evaluator.h"
#include "interp/scalar_ops.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

// One line of the operands along the sorted dimension, and the order of its elements.
class Line {
 public:
  Line(Function& less, size_t operands, int64_t n)
      : less_(less),
        cells_(operands, std::vector<Cell>(static_cast<size_t>(n))),
        pair_(2 * operands),
        order_(static_cast<size_t>(n)),
        merged_(static_cast<size_t>(n)) {}
  std::vector<Cell>& cells(size_t operand) { return cells_[operand]; }
  const std::vector<size_t>& order() const { return order_; }

  // A bottom-up merge sort: stable, and within bounds whatever the comparator returns; std::sort is
  // not if the comparator is not a strict order.
  Status sort() {
    std::iota(order_.begin(), order_.end(), size_t{0});
    const size_t n = order_.size();
    for (size_t width = 1; width < n; width *= 2) {
      for (size_t begin = 0; begin < n; begin += 2 * width) {
        HEDDLE_RETURN_IF_ERROR(
            merge(begin, std::min(begin + width, n), std::min(begin + 2 * width, n)));
      }
      order_.swap(merged_);
    }
    return {};
  }

 private:
  Status merge(size_t begin, size_t middle, size_t end) {
    size_t a = begin, b = middle;
    for (size_t out = begin; out < end; ++out) {
      bool take_b = a == middle;
      if (!take_b && b < end) {
        HEDDLE_ASSIGN_OR_RETURN(take_b, is_less(order_[b], order_[a]));
      }
      merged_[out] = take_b ? order_[b++] : order_[a++];
    }
    return {};
  }
  Result<bool> is_less(size_t i, size_t j) {
    for (size_t k = 0; k < cells_.size(); ++k) {
      pair_[2 * k] = cells_[k][i];
      pair_[2 * k + 1] = cells_[k][j];
    }
    Cell result;
    HEDDLE_RETURN_IF_ERROR(less_.call(pair_.data(), &result));
    return result.u != 0;
  }

  Function& less_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<Cell> pair_;
  std::vector<size_t> order_, merged_;
};

}  // namespace

Result<Literal> eval_sort(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Function * less, e.function(*instr.called()[0], 2 * operands.size(), 1));
  const Ints dims = operands[0].shape().extents(), strides = row_major_strides(dims);
  const auto along = static_cast<size_t>(instr.attrs_as<hlo::SortAttrs>().dimension);
  const int64_t n = dims[along], step = strides[along];
  Ints lines = dims;
  lines[along] = 1;
  std::vector<Literal> results;
  for (const Literal& x : operands) {
    HEDDLE_ASSIGN_OR_RETURN(Literal result, Literal::make(x.shape()));
    results.push_back(std::move(result));
  }
  Line line(*less, operands.size(), n);
  for (Walk walk(lines); n > 0 && !walk.done(); walk.next()) {
    const int64_t base = walk.offset(strides);
    for (size_t k = 0; k < operands.size(); ++k) {
      for (int64_t i = 0; i < n; ++i)
        line.cells(k)[static_cast<size_t>(i)] = load_cell(operands[k], base + i * step);
    }
    HEDDLE_RETURN_IF_ERROR(line.sort());
    for (size_t k = 0; k < operands.size(); ++k) {
      void* data = results[k].mutable_data();
      for (int64_t i = 0; i < n; ++i) {
        const Cell& cell = line.cells(k)[line.order()[static_cast<size_t>(i)]];
        store_cells(results[k].type(), data, base + i * step, 1, &cell);
      }
    }
  }
  if (results.size() == 1 && !instr.shape().is_tuple()) return std::move(results[0]);
  return Literal::tuple(std::move(results));
}

// In the total order of the type; for equal values the first one comes first.
Result<Literal> top_k(Evaluator& e, const Literal& x, int64_t k, bool largest) {
  Ints dims = x.shape().extents();
  const int64_t n = dims.back();
  dims.back() = k;
  HEDDLE_ASSIGN_OR_RETURN(Literal values, Literal::make(Shape::array(x.type(), dims)));
  HEDDLE_ASSIGN_OR_RETURN(Literal places, Literal::make(Shape::array(Type::s32, dims)));
  const CellTest before =
      comparison(domain_of(x.type()), largest ? hlo::Direction::gt : hlo::Direction::lt, true);
  std::vector<Cell> cells(static_cast<size_t>(n));
  std::vector<size_t> order(static_cast<size_t>(n));
  void* data = values.mutable_data();
  const int64_t rows = n == 0 ? 0 : x.elems() / n;
  for (int64_t row = 0; row < rows; ++row) {
    load_cells(x.type(), x.data(), row * n, n, cells.data());
    std::iota(order.begin(), order.end(), size_t{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](size_t i, size_t j) {
      if (before(cells[i], cells[j])) return true;
      return !before(cells[j], cells[i]) && i < j;
    });
    for (int64_t i = 0; i < k; ++i) {
      const size_t place = order[static_cast<size_t>(i)];
      store_cells(x.type(), data, row * k + i, 1, &cells[place]);
      places.set_s64(row * k + i, static_cast<int64_t>(place));
    }
  }
  return Literal::tuple({std::move(values), std::move(places)});
}

Result<Literal> eval_topk(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::TopKAttrs>();
  return top_k(e, operands[0], attrs.k, attrs.largest);
}

}  // namespace heddle::interp
