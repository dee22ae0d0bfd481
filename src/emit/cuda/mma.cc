// Matrix instructions (kernel/mma.h) as PTX. A lane's elements of A and B are in the order of their
// map, the first in the lowest bits of a 32-bit register.
#include <fmt/ranges.h>

#include "emit/cuda/cuda_emitter.h"
#include "kernel/mma.h"

namespace heddle::emit::cuda {
namespace {

using kernel::MmaDescriptor;
using kernel::MmaNumerics;

std::string ptx_type(Type type, const MmaDescriptor& mma) {
  if (type == Type::u1) return "b1";
  if (type == Type::f32 && mma.numerics == MmaNumerics::tf32) return "tf32";
  return std::string(tensor::type_name(type));
}

// "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
std::string ptx_name(const MmaDescriptor& mma) {
  std::string name = fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}", mma.m, mma.n,
                                 mma.k, ptx_type(mma.d, {}), ptx_type(mma.a, mma),
                                 ptx_type(mma.b, mma), ptx_type(mma.d, {}));
  if (mma.a == Type::u1) name += mma.numerics == MmaNumerics::differs ? ".xor.popc" : ".and.popc";
  return name;
}

// "{%4, %5}": operands of the text of an assembly.
std::string places(int first, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(fmt::format("%{}", first + i));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::string operands(const char* kind, const char* name, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(fmt::format("\"{}\"({}[{}])", kind, name, i));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

void CudaEmitter::emit_mma(const Stmt& stmt) {
  const MmaDescriptor& mma = *kernel::find_mma(stmt.name);
  if (mma.lanes != 32 || !in_subgroup_)
    return refuse(fmt::format("the matrix instruction {} outside of a subgroup", stmt.name));
  prepare(stmt);
  // Where the registers of each fragment begin.
  std::vector<std::string> from;
  size_t next = 0;
  for (BufferId id : stmt.fragments) {
    const kernel::Buffer& buffer = kernel_.buffer(id);
    std::string at = "0";
    for (size_t axis = 0; axis + 1 < buffer.extents.size(); ++axis)
      at =
          fmt::format("({} * {} + (int){})", at, buffer.extents[axis], value(stmt.indices[next++]));
    from.push_back(
        fmt::format("{} + {} * {}", buffer_names_[id.index()], at, buffer.extents.back()));
  }
  const bool is_float = tensor::is_float(mma.d);
  const int sums = mma.map_d.registers();
  open("");
  const auto pack = [&](const char* name, const std::string& source, Type type, int elems) {
    const int bits = tensor::type_bits(type), each = 32 / bits, words = elems / each;
    line(fmt::format("unsigned {}[{}] = {{}};", name, words));
    line("#pragma unroll");
    open(fmt::format("for (int i_ = 0; i_ < {}; ++i_)", elems));
    const std::string element = fmt::format("({})[i_]", source);
    if (type == Type::f32)
      line(fmt::format("{}[i_] = __float_as_uint({});", name, element));
    else
      line(fmt::format("{}[i_ / {}] |= ((unsigned){} & {}u) << i_ % {} * {};", name, each, element,
                       (1u << bits) - 1, each, bits));
    close();
    return words;
  };
  const int a = pack("a_", from[1], mma.a, mma.map_a.registers());
  const int b = pack("b_", from[2], mma.b, mma.map_b.registers());
  line(fmt::format("{} d_[{}];", c_type(mma.d), sums));
  line(fmt::format("for (int i_ = 0; i_ < {}; ++i_) d_[i_] = ({})[i_];", sums, from[3]));
  line(fmt::format("asm volatile(\"{} {}, {}, {}, {};\"", ptx_name(mma), places(0, sums),
                   places(sums, a), places(sums + a, b), places(0, sums)));
  line(fmt::format("    : {}", operands(is_float ? "+f" : "+r", "d_", sums)));
  line(fmt::format("    : {}, {});", operands("r", "a_", a), operands("r", "b_", b)));
  line(fmt::format("for (int i_ = 0; i_ < {}; ++i_) ({})[i_] = d_[i_];", sums, from[0]));
  close();
}

}  // namespace heddle::emit::cuda
