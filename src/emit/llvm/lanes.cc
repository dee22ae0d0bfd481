// Loads and stores of a vector of lanes. Consecutive elements are one access, masked if need be;
// small strides are a few accesses and shuffles; all others are gathers or scatters if the target
// has them, else element by element.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>

#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/masks.h"

namespace heddle::emit {

using llvm::Value;

namespace {

std::vector<int> reversed(int lanes) {
  std::vector<int> order;
  for (int i = lanes - 1; i >= 0; --i) order.push_back(i);
  return order;
}

constexpr int64_t kMaxShuffledStride = 4;

bool is_constant(Value* mask) { return !mask || llvm::isa<llvm::Constant>(mask); }

}  // namespace

// One pointer per lane, as a vector.
Value* KernelEmitter::lane_pointers(const Address& address, Type type) {
  if (address.offsets) {
    llvm::Type* unit =
        address.offsets_in_bytes ? b_.getInt8Ty() : memory_type(b_.getContext(), type);
    return b_.CreateGEP(unit, address.pointer, address.offsets);
  }
  int64_t bytes = tensor::type_bytes(type);
  bool in_elements = address.lane_bytes % bytes == 0;
  int64_t step = in_elements ? address.lane_bytes / bytes : address.lane_bytes;
  std::vector<llvm::Constant*> offsets;
  bool narrow = std::abs(step) < (int64_t{1} << 31) / std::max(lanes_, 1);
  llvm::Type* index = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  for (int i = 0; i < lanes_; ++i) {
    offsets.push_back(int_constant(index, static_cast<uint64_t>(step) * static_cast<uint64_t>(i)));
  }
  llvm::Type* unit = in_elements ? memory_type(b_.getContext(), type) : b_.getInt8Ty();
  return b_.CreateGEP(unit, address.pointer, llvm::ConstantVector::get(offsets));
}

// Lane `lane`'s element.
Value* KernelEmitter::lane_pointer(const Address& address, Type type, int lane) {
  if (!address.offsets) {
    auto distance = static_cast<uint64_t>(address.lane_bytes) * static_cast<uint64_t>(lane);
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), address.pointer, distance);
  }
  llvm::Type* unit = address.offsets_in_bytes ? b_.getInt8Ty() : memory_type(b_.getContext(), type);
  Value* offset = b_.CreateExtractElement(address.offsets, static_cast<uint64_t>(lane));
  return b_.CreateGEP(unit, address.pointer, b_.CreateSExt(offset, b_.getInt64Ty()));
}

bool KernelEmitter::has_gather(Type type) const {
  return isa_.avx512 && tensor::type_bytes(type) >= 4;
}

Value* KernelEmitter::load_consecutive(Type type, const Address& address, Value* mask,
                                       Value* other) {
  auto* lanes_type = llvm::cast<llvm::FixedVectorType>(other->getType());
  Value* pointer = address.pointer;
  bool reverse = address.lane_bytes < 0;
  llvm::Align align(static_cast<uint64_t>(reverse ? address.element_alignment : address.alignment));
  if (reverse) {
    pointer = b_.CreateConstGEP1_64(lanes_type->getElementType(), pointer,
                                    static_cast<uint64_t>(1 - lanes_));
    if (!all_true(mask)) {
      mask = b_.CreateShuffleVector(mask, reversed(lanes_));
      other = b_.CreateShuffleVector(other, reversed(lanes_));
    }
  }
  Value* loaded = nullptr;
  if (all_true(mask)) {
    loaded = b_.CreateAlignedLoad(lanes_type, pointer, align);
  } else if (unsigned count = first_lanes(mask, tensor::type_bytes(type))) {
    auto* narrow = llvm::FixedVectorType::get(lanes_type->getElementType(), count);
    std::vector<int> all, order;
    for (int i = 0; i < lanes_; ++i) {
      const bool on = i < static_cast<int>(count);
      all.push_back(on ? i : -1);
      order.push_back(on ? i : lanes_ + i);
    }
    loaded = b_.CreateShuffleVector(b_.CreateAlignedLoad(narrow, pointer, align), all);
    loaded = b_.CreateShuffleVector(loaded, other, order);
  } else {
    loaded = b_.CreateMaskedLoad(lanes_type, pointer, align, mask, other);
  }
  return reverse ? b_.CreateShuffleVector(loaded, reversed(lanes_)) : loaded;
}

// Every `stride`th element: `stride` vectors, the last one ending at the last lane's element; each
// lane is taken from the vector that holds it.
Value* KernelEmitter::load_strided(Type type, const Address& address, int stride) {
  llvm::Type* element = memory_type(b_.getContext(), type);
  auto* lanes_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
  llvm::Align align(static_cast<uint64_t>(address.element_alignment));
  int last = (lanes_ - 1) * stride + 1 - lanes_;  // where the last vector starts
  Value* result = llvm::PoisonValue::get(lanes_type);
  for (int part = 0; part < stride; ++part) {
    int start = part == stride - 1 ? last : part * lanes_;
    Value* pointer = b_.CreateConstGEP1_64(element, address.pointer, static_cast<uint64_t>(start));
    Value* vector = b_.CreateAlignedLoad(lanes_type, pointer, align);
    std::vector<int> order;  // of the result so far (0 on) and this vector (lanes_ on)
    for (int lane = 0; lane < lanes_; ++lane) {
      int holder = std::min(lane * stride / lanes_, stride - 1);
      order.push_back(holder == part ? lanes_ + lane * stride - start : holder < part ? lane : -1);
    }
    result = b_.CreateShuffleVector(result, vector, order);
  }
  return result;
}

Value* KernelEmitter::load_each(Type type, const Address& address, Value* mask, Value* other) {
  llvm::Type* element = other->getType()->getScalarType();
  llvm::Align align(static_cast<uint64_t>(address.element_alignment));
  Value* result = all_true(mask) ? llvm::PoisonValue::get(other->getType()) : other;
  for (int i = 0; i < lanes_; ++i) {
    if (!lane_is_on(mask, i)) continue;
    Value* loaded = b_.CreateAlignedLoad(element, lane_pointer(address, type, i), align);
    result = b_.CreateInsertElement(result, loaded, static_cast<uint64_t>(i));
  }
  return result;
}

// `mask`: null for all lanes; `other`: the value of lanes that are off, null for zero.
Value* KernelEmitter::load_lanes(Type type, const Address& address, Value* mask, Value* other) {
  llvm::Type* element = memory_type(b_.getContext(), type);
  auto* lanes_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
  int64_t bytes = tensor::type_bytes(type);
  other = other ? to_memory(type, other) : llvm::Constant::getNullValue(lanes_type);
  int64_t stride = address.offsets ? 0 : address.lane_bytes / bytes;  // extents are whole elements
  Value* loaded = load_spread(type, address, mask, other);
  if (loaded) {
  } else if (stride == 1 || stride == -1) {
    loaded = load_consecutive(type, address, mask, other);
  } else if (stride > 1 && stride <= kMaxShuffledStride && all_true(mask) && lanes_ > 1) {
    loaded = load_strided(type, address, static_cast<int>(stride));
  } else if (!has_gather(type) && is_constant(mask)) {
    loaded = load_each(type, address, mask, other);
  } else {
    llvm::Align align(static_cast<uint64_t>(address.element_alignment));
    loaded = b_.CreateMaskedGather(lanes_type, lane_pointers(address, type), align, all_lanes(mask),
                                   other);
  }
  return from_memory(type, loaded);
}

void KernelEmitter::store_lanes(const Stmt& stmt, Type type, const Address& address, Value* value,
                                Value* mask) {
  int64_t bytes = tensor::type_bytes(type);
  value = to_memory(type, value);
  llvm::Align align(static_cast<uint64_t>(address.alignment));
  bool reverse = !address.offsets && address.lane_bytes == -bytes;
  if (!address.offsets && (address.lane_bytes == bytes || reverse)) {
    Value* pointer = address.pointer;
    if (reverse) {
      pointer = b_.CreateConstGEP1_64(value->getType()->getScalarType(), pointer,
                                      static_cast<uint64_t>(1 - lanes_));
      value = b_.CreateShuffleVector(value, reversed(lanes_));
      if (!all_true(mask)) mask = b_.CreateShuffleVector(mask, reversed(lanes_));
      align = llvm::Align(static_cast<uint64_t>(bytes));
    }
    if (unsigned count = all_true(mask) ? 0 : first_lanes(mask, bytes)) {
      // Loads of the memory after it need not wait, as they do for a masked store.
      std::vector<int> first;
      for (int i = 0; i < static_cast<int>(count); ++i) first.push_back(i);
      b_.CreateAlignedStore(b_.CreateShuffleVector(value, first), pointer, align);
      return;
    }
    if (!all_true(mask)) {
      b_.CreateMaskedStore(value, pointer, align, mask);
      return;
    }
    llvm::StoreInst* plain = b_.CreateAlignedStore(value, pointer, align);
    // Only whole aligned registers can be stored past the caches.
    int64_t vector_bytes = std::min<int64_t>(bytes * lanes_, isa_.simd_bits / 8);
    if (stmt.streaming && vector_bytes >= 16 && address.alignment >= vector_bytes && !reverse) {
      llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
      plain->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(b_.getContext(), one));
      streams_ = true;
    }
    return;
  }
  llvm::Align one(static_cast<uint64_t>(bytes));
  if (has_gather(type) || !is_constant(mask)) {
    b_.CreateMaskedScatter(value, lane_pointers(address, type), one, all_lanes(mask));
    return;
  }
  for (int i = 0; i < lanes_; ++i) {
    if (!lane_is_on(mask, i)) continue;
    b_.CreateAlignedStore(b_.CreateExtractElement(value, static_cast<uint64_t>(i)),
                          lane_pointer(address, type, i), one);
  }
}

}  // namespace heddle::emit
