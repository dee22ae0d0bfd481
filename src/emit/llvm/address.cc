// Addresses. The index of an access becomes a sum: terms of variables, and a constant. Terms are
// added to the buffer's pointer from the outermost scope inwards, each partial sum once, and the
// constant comes last, at the access: so accesses that differ only by constants, like the rows of a
// register tile, share one pointer register and use displacements.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>
#include <numeric>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using kernel::Space;
using llvm::Value;

namespace {

int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

void KernelEmitter::add_term(Offset& sum, std::vector<int64_t> key, const Val& atom,
                             int64_t coefficient, const std::vector<int64_t>& dims) {
  sum.level = std::max(sum.level, atom.level);
  auto* number = atom.uniform() ? llvm::dyn_cast<llvm::ConstantInt>(atom.v) : nullptr;
  if (number && dims.empty()) {
    sum.constant = wrapped_sum(sum.constant, wrapped_product(coefficient, number->getSExtValue()));
    return;
  }
  for (Term& term : sum.terms) {
    if (term.key == key && term.dims == dims) {
      term.coefficient = wrapped_sum(term.coefficient, coefficient);
      return;
    }
  }
  sum.terms.push_back({std::move(key), atom, coefficient, dims});
}

// The variable of a loop that is emitted in copies is its base plus the copy's offset.
void KernelEmitter::add_atom(Offset& sum, const kernel::Linear::Term& term) {
  const Binding* binding = term.var.valid() ? &bindings_[term.var.index()] : nullptr;
  if (binding && binding->kind == Binding::Kind::loop) {
    sum.level = std::max(sum.level, binding->level);
    add_term(sum, {0, term.var.value}, binding->base, term.factor, term.dims);
    const Val offset = constant(Type::s64, binding->offset);
    if (binding->offset != 0) add_term(sum, {2, binding->offset}, offset, term.factor, term.dims);
    return;
  }
  const Op op = kernel_.expr(term.atom).op;
  const bool divides = op == Op::floor_div || op == Op::floor_mod;
  if (divides && term.dims.empty() && spread_division(term.atom, term.factor, sum)) return;
  add_term(sum, {1, term.atom.value}, eval(term.atom), term.factor, term.dims);
}

Value* KernelEmitter::base_pointer(kernel::BufferId id) {
  Value*& pointer = scopes_[0].pointers[{static_cast<int64_t>(id.index())}];
  if (pointer) return pointer;
  const kernel::Buffer& buffer = kernel_.buffer(id);
  At at(*this, 0);
  if (buffer.space == Space::scratch) {
    return pointer = b_.CreateConstGEP1_64(b_.getInt8Ty(), function_->getArg(4),
                                           static_cast<uint64_t>(buffer.offset_bytes));
  }
  uint64_t position = 0;  // among the global buffers
  for (size_t i = 0; i < id.index(); ++i) position += kernel_.buffers[i].space == Space::global;
  Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), function_->getArg(0), position);
  return pointer = b_.CreateLoad(b_.getPtrTy(), slot);
}

// coefficient * atom * dims, of a scalar or of lanes.
Value* KernelEmitter::product(const Term& term, bool narrow) {
  Value* v = term.atom.v;
  bool lanes = !term.atom.uniform();
  if (lanes) v = vector(term.atom, narrow ? b_.getInt32Ty() : b_.getInt64Ty());
  v = b_.CreateMul(v, int_constant(v->getType(), static_cast<uint64_t>(term.coefficient)));
  for (int64_t which : term.dims) {
    Val extent = dimension(which);
    v = b_.CreateMul(v, lanes ? vector(extent, b_.getInt64Ty()) : extent.v);
  }
  return v;
}

void KernelEmitter::append_key(const Term& term, std::vector<int64_t>& key) {
  key.insert(key.end(), term.key.begin(), term.key.end());
  key.push_back(term.coefficient);
  key.insert(key.end(), term.dims.begin(), term.dims.end());
  key.push_back(INT64_MIN);  // a separator
}

Value* KernelEmitter::uniform_pointer(kernel::BufferId id, const std::vector<Term>& terms) {
  Value* pointer = base_pointer(id);
  std::vector<int64_t> key = {static_cast<int64_t>(id.index())};
  for (size_t i = 0; i < terms.size();) {
    int level = std::max(terms[i].atom.level, branch_level());
    bool pinned = terms[i].atom.pinned;
    if (pinned) level = top();
    size_t end = i;
    for (; end < terms.size() && terms[end].atom.level == terms[i].atom.level &&
           terms[end].atom.pinned == pinned;
         ++end) {
      append_key(terms[end], key);
    }
    Value** known = pinned ? nullptr : &scopes_[static_cast<size_t>(level)].pointers[key];
    if (!known || !*known) {
      At at(*this, level);
      Value* offset = nullptr;
      for (size_t j = i; j < end; ++j) {
        Value* part = product(terms[j], false);
        offset = offset ? b_.CreateAdd(offset, part) : part;
      }
      pointer = b_.CreateGEP(b_.getInt8Ty(), pointer, offset);
      if (known) *known = pointer;
    } else {
      pointer = *known;
    }
    i = end;
  }
  return pointer;
}

void KernelEmitter::lane_offsets(const std::vector<Term>& varying, int64_t elem_bytes,
                                 Address& address) {
  // In elements if all coefficients divide: the hardware scales. In 32 bits if all fits.
  bool in_elements = true;
  for (const Term& term : varying) in_elements &= term.coefficient % elem_bytes == 0;
  address.offsets_in_bytes = !in_elements;
  Bounds sum = Bounds::exactly(0);
  bool narrow = true;
  std::vector<Term> terms = varying;
  for (Term& term : terms) {
    if (in_elements) term.coefficient /= elem_bytes;
    Bounds part = term.atom.bounds * Bounds::exactly(term.coefficient);
    sum = sum + part;
    narrow &= term.dims.empty() && term.atom.bounds.fits_s32() && part.fits_s32() && sum.fits_s32();
  }
  At at(*this, address.level);
  Value* offsets = nullptr;
  for (const Term& term : terms) {
    Value* part = product(term, narrow);
    offsets = offsets ? b_.CreateAdd(offsets, part) : part;
  }
  address.offsets = offsets;
}

// Inputs may have any alignment: weights are read in place, from a model file, maybe at odd bytes.
int64_t KernelEmitter::element_alignment(const kernel::Buffer& buffer) {
  const bool anywhere = buffer.space == Space::global && buffer.access == kernel::Access::in &&
                        buffer.aligned_bytes == 0;
  return anywhere ? 1 : tensor::type_bytes(buffer.type);
}

// The largest known power of two (up to 64) that divides the address.
int64_t KernelEmitter::known_alignment(const kernel::Buffer& buffer, const Offset& sum) const {
  int64_t base = buffer.space == Space::scratch
                     ? std::gcd<int64_t>(64, buffer.offset_bytes)
                     : std::max(buffer.aligned_bytes, element_alignment(buffer));
  base = std::gcd(base, sum.constant == INT64_MIN ? 0 : sum.constant);
  for (const Term& term : sum.terms) {
    __extension__ __int128 multiple =
        static_cast<__int128>(term.coefficient) * (term.atom.varying ? 1 : term.atom.multiple);
    base = std::gcd(base, static_cast<int64_t>(multiple & INT64_MAX));
  }
  int64_t power = 1;
  while (power < 64 && base % (power * 2) == 0) power *= 2;
  return std::max<int64_t>(power, 1);
}

// The element's distance from the buffer's start; terms of outer scopes first.
KernelEmitter::Offset KernelEmitter::byte_offset(const kernel::Buffer& buffer,
                                                 const ExprId* indices) {
  const kernel::Lets lets = [this](kernel::VarId var) {
    const Binding& binding = bindings_[var.index()];
    return binding.kind == Binding::Kind::expression ? binding.expression : ExprId();
  };
  kernel::Linear form;
  int64_t stride = tensor::type_bytes(buffer.type);
  std::vector<int64_t> dims;  // run-time factors of the stride
  for (size_t i = buffer.extents.size(); i-- > 0;) {
    form.add(kernel_, indices[i], stride, dims, lets);
    if (buffer.extents[i] >= 0) {
      stride = wrapped_product(stride, buffer.extents[i]);
    } else {
      int64_t which = -1 - buffer.extents[i];
      dims.insert(std::upper_bound(dims.begin(), dims.end(), which), which);
    }
  }
  Offset sum;
  sum.constant = form.constant;
  for (const kernel::Linear::Term& term : form.terms) add_atom(sum, term);
  std::erase_if(sum.terms, [](const Term& term) { return term.coefficient == 0; });
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const Term& a, const Term& b) {
    return std::tie(a.atom.pinned, a.atom.level) < std::tie(b.atom.pinned, b.atom.level);
  });
  return sum;
}

// Separates uniform from varying terms. Linear terms add to lane_bytes, with lane 0's value among
// the uniform ones; beside other varying terms they count as varying, too.
void KernelEmitter::split_by_lanes(Offset& sum, std::vector<Term>& uniform,
                                   std::vector<Term>& varying, Address& address) {
  auto steps = [](const Term& term) { return !term.atom.varying && term.dims.empty(); };
  bool scattered = std::any_of(sum.terms.begin(), sum.terms.end(), [&](const Term& term) {
    return !term.atom.uniform() && !steps(term);
  });
  for (const Term& term : sum.terms) {
    if (term.atom.uniform()) {
      uniform.push_back(term);
    } else if (scattered) {
      varying.push_back(term);
    } else {
      address.lane_bytes =
          wrapped_sum(address.lane_bytes, wrapped_product(term.coefficient, term.atom.stride));
      uniform.push_back(term);
      uniform.back().atom.stride = 0;  // from here on lane 0
    }
  }
  std::erase_if(uniform, [&](const Term& term) {  // lane 0 of a loop without iterations
    auto* number = llvm::dyn_cast<llvm::ConstantInt>(term.atom.v);
    if (!number || !term.dims.empty()) return false;
    int64_t part = wrapped_product(term.coefficient, number->getSExtValue());
    sum.constant = wrapped_sum(sum.constant, part);
    return true;
  });
}

KernelEmitter::Address KernelEmitter::address(kernel::BufferId id, const ExprId* indices) {
  const kernel::Buffer& buffer = kernel_.buffer(id);
  Offset sum = byte_offset(buffer, indices);
  Address result;
  result.level = std::max(branch_level(), sum.level);
  result.place_level = branch_level();
  result.place = {static_cast<int64_t>(id.index()), lanes_};
  result.alignment = known_alignment(buffer, sum);
  result.element_alignment = element_alignment(buffer);
  for (const Term& term : sum.terms) {
    result.place_level = std::max(result.place_level, term.atom.level);
    result.pinned |= term.atom.pinned;
    append_key(term, result.place);
  }
  if (result.pinned) result.level = top();
  std::vector<Term> uniform, varying;
  split_by_lanes(sum, uniform, varying, result);
  if (!varying.empty()) lane_offsets(varying, tensor::type_bytes(buffer.type), result);
  if (!sum.spread.empty()) spread_offsets(buffer, sum, result);
  Value* pointer = uniform_pointer(id, uniform);
  if (sum.constant != 0) {
    pointer = b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer, static_cast<uint64_t>(sum.constant));
  }
  result.place.push_back(sum.constant);
  result.pointer = pointer;
  return result;
}

}  // namespace heddle::emit
