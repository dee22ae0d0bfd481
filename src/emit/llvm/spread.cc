// Lanes at constant but unequal distances, as where each group of lanes reads one element: a
// quotient or remainder of the lane number by a constant. Such a load loads the whole range of
// elements and shuffles them.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/masks.h"

namespace heddle::emit {

using llvm::Value;

namespace {

constexpr int64_t kMostStride = 1 << 20;

// The position of each lane in two loaded vectors, the second after the first.
std::vector<int> order_of(const std::vector<int64_t>& places, Value* mask, int64_t first,
                          int64_t count, int64_t second) {
  std::vector<int> order;
  for (size_t lane = 0; lane < places.size(); ++lane) {
    const int64_t at = places[lane];
    if (!lane_is_on(mask, static_cast<int>(lane))) {
      order.push_back(-1);
    } else if (at < first + count) {
      order.push_back(static_cast<int>(at - first));
    } else {
      order.push_back(static_cast<int>(count + at - second));
    }
  }
  return order;
}

}  // namespace

// Adds scale times a quotient or remainder, if its operand is linear over the lanes and crosses
// multiples of the divisor at known lanes.
bool KernelEmitter::spread_division(ExprId id, int64_t scale, Offset& sum) {
  const Expr& expr = kernel_.expr(id);
  const Expr& by = kernel_.expr(expr.operands[1]);
  if (lanes_ < 2 || by.op != Op::constant || by.imm <= 0) return false;
  const int64_t d = by.imm;
  const Val a = eval(expr.operands[0]);
  if (a.varying || a.stride == 0 || a.stride % d == 0 || std::abs(a.stride) > kMostStride ||
      a.bounds.within({0, d - 1}))
    return false;
  const std::optional<int64_t> rest = residue(a, d);
  if (!rest) return false;
  const int64_t last = *rest + a.stride * (lanes_ - 1);
  if (last >= 0 && last < d) return false;  // linear, or the same in all lanes
  sum.level = std::max(sum.level, a.level);
  sum.spread.resize(static_cast<size_t>(lanes_));
  const bool quotient = expr.op == Op::floor_div;
  for (int lane = 0; lane < lanes_; ++lane) {
    const int64_t x = *rest + a.stride * lane;
    const int64_t part = quotient ? floor_quotient(x, d) : floor_remainder(x, d);
    sum.spread[static_cast<size_t>(lane)] += scale * part;
  }
  if (!quotient) return true;
  Val lane0 = a;
  lane0.stride = 0;
  lane0.multiple = a.multiple % d == 0 ? a.multiple / d : 1;
  lane0.bounds = floor_div(a.bounds, Bounds::exactly(d));
  {
    At at(*this, a.level);
    const Facts facts{a.bounds.low >= 0, true};
    lane0.v = emit_binary(math_, Op::floor_div, Type::s64, a.v,
                          b_.getInt64(static_cast<uint64_t>(d)), facts);
  }
  add_term(sum, {3, id.value}, lane0, scale, {});
  return true;
}

void KernelEmitter::spread_offsets(const kernel::Buffer& buffer, const Offset& sum,
                                   Address& address) {
  const int64_t bytes = tensor::type_bytes(buffer.type);
  address.place.push_back(INT64_MIN + 1);  // no term's key
  address.place.insert(address.place.end(), sum.spread.begin(), sum.spread.end());
  std::vector<llvm::Constant*> numbers;
  if (address.offsets) {  // added to computed offsets
    At at(*this, address.level);
    const int64_t unit = address.offsets_in_bytes ? 1 : bytes;
    for (int64_t part : sum.spread)
      numbers.push_back(int_constant(b_.getInt64Ty(), static_cast<uint64_t>(part / unit)));
    Value* wide = b_.CreateSExt(address.offsets, llvm::ConstantVector::get(numbers)->getType());
    address.offsets = b_.CreateAdd(wide, llvm::ConstantVector::get(numbers));
    return;
  }
  for (int lane = 0; lane < lanes_; ++lane)
    address.spread.push_back((sum.spread[static_cast<size_t>(lane)] + address.lane_bytes * lane) /
                             bytes);
  const auto [low, high] = std::minmax_element(address.spread.begin(), address.spread.end());
  const bool narrow = *low > INT32_MIN && *high < INT32_MAX;
  for (int64_t place : address.spread)
    numbers.push_back(
        int_constant(narrow ? b_.getInt32Ty() : b_.getInt64Ty(), static_cast<uint64_t>(place)));
  address.lane_bytes = 0;
  address.offsets = llvm::ConstantVector::get(numbers);
  int64_t elems = 1;
  for (int64_t extent : buffer.extents) {
    if (extent < 0) return;
    elems *= extent;
  }
  int64_t granule = elems;
  for (const Term& term : sum.terms) {
    if (!term.dims.empty() || granule < 1) return;
    __extension__ __int128 step =
        static_cast<__int128>(term.coefficient / bytes) * term.atom.multiple;
    granule = std::gcd(granule, static_cast<int64_t>(step % granule));
  }
  if (granule < 1) return;
  address.granule = granule;
  address.from = floor_remainder(sum.constant / bytes, granule);
}

// Two elements, each for a part of the lanes: a masked broadcast from memory is one instruction and
// does not use the shuffle port. Null: there are more, or no such instructions.
Value* KernelEmitter::load_halves(Type type, const Address& address, Value* mask, int64_t low,
                                  int64_t high) {
  const int64_t bytes = tensor::type_bytes(type);
  if (!isa_.avx512 || bytes < 4 || bytes * lanes_ != 64 || !all_true(mask)) return nullptr;
  std::vector<llvm::Constant*> second;
  for (int64_t place : address.spread) {
    if (place != low && place != high) return nullptr;
    second.push_back(b_.getInt1(place == high));
  }
  llvm::Type* element = memory_type(b_.getContext(), type);
  auto splat = [&](int64_t place) {
    Value* pointer = b_.CreateConstGEP1_64(element, address.pointer, static_cast<uint64_t>(place));
    return b_.CreateVectorSplat(
        static_cast<unsigned>(lanes_),
        b_.CreateAlignedLoad(element, pointer,
                             llvm::Align(static_cast<uint64_t>(address.element_alignment))));
  };
  Value* first = splat(low);
  return b_.CreateSelect(llvm::ConstantVector::get(second), splat(high), first);
}

// One vector of the range from the first to the last element, or two if that is not enough; null:
// neither will do. No element outside the buffer is read: the whole granule around an element that
// is read is inside.
Value* KernelEmitter::load_spread(Type type, const Address& address, Value* mask, Value* other) {
  if (address.spread.empty() || (mask && !llvm::isa<llvm::Constant>(mask))) return nullptr;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int lane = 0; lane < lanes_; ++lane) {
    if (!lane_is_on(mask, lane)) continue;
    low = std::min(low, address.spread[static_cast<size_t>(lane)]);
    high = std::max(high, address.spread[static_cast<size_t>(lane)]);
  }
  if (low > high) return other;
  if (Value* halves = load_halves(type, address, mask, low, high)) return halves;
  // Extended to whole granules, if one vector still holds them.
  int64_t first = low - floor_remainder(address.from + low, address.granule);
  int64_t count = high + 1 - first;
  count += floor_remainder(-(address.from + high + 1), address.granule);
  if (count > lanes_) {
    first = low;
    count = high + 1 - low;
  }
  const bool two = count > lanes_;
  if (count > 2 * lanes_ || (two && !all_true(mask))) return nullptr;
  const bool whole = !two && (count & (count - 1)) == 0;
  const bool masks = tensor::type_bytes(type) < 4 ? isa_.avx512 : isa_.avx2;
  if (!two && !whole && !masks) return nullptr;
  llvm::Type* element = memory_type(b_.getContext(), type);
  auto vector_of = [&](int64_t n) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(n));
  };
  const llvm::Align align(static_cast<uint64_t>(address.element_alignment));
  auto pointer_at = [&](int64_t place) {
    return b_.CreateConstGEP1_64(element, address.pointer, static_cast<uint64_t>(place));
  };
  Value* result = nullptr;
  if (two) {
    const int64_t second = high + 1 - lanes_;
    Value* a = b_.CreateAlignedLoad(vector_of(lanes_), pointer_at(first), align);
    Value* b = b_.CreateAlignedLoad(vector_of(lanes_), pointer_at(second), align);
    result = b_.CreateShuffleVector(a, b, order_of(address.spread, mask, first, lanes_, second));
  } else {
    Value* loaded = nullptr;
    if (whole) {
      loaded = b_.CreateAlignedLoad(vector_of(count), pointer_at(first), align);
    } else {
      std::vector<llvm::Constant*> on;
      for (int lane = 0; lane < lanes_; ++lane) on.push_back(b_.getInt1(lane < count));
      loaded = b_.CreateMaskedLoad(vector_of(lanes_), pointer_at(first), align,
                                   llvm::ConstantVector::get(on),
                                   llvm::Constant::getNullValue(other->getType()));
    }
    result = b_.CreateShuffleVector(loaded, order_of(address.spread, mask, first, lanes_, 0));
  }
  return all_true(mask) ? result : b_.CreateSelect(mask, result, other);
}

}  // namespace heddle::emit
