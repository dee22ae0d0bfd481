#include "hlo/first_rows.h"

#include <string>

#include "hlo/symbol.h"

namespace heddle::hlo {

Instr* first_rows(Builder& b, Instr* x, Instr* n) {
  const Shape shape = x->shape();
  Instr* least = b.binary(Opcode::maximum, n, b.scalar(tensor::Type::s32, 1));
  return b.make(Opcode::custom_call, {x, n, least},
                CustomCallAttrs{std::string(kFirstRows), false, {}, ""}, {}, &shape);
}

Instr* with_outermost(Builder& b, Instr* x, int64_t dimension,
                      const std::function<Instr*(Instr*)>& make) {
  if (dimension == 0) return make(x);
  Ints outermost{dimension}, back(static_cast<size_t>(x->shape().rank()));
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (d != dimension) outermost.push_back(d);
  for (size_t d = 0; d < back.size(); ++d)
    back[static_cast<size_t>(outermost[d])] = static_cast<int64_t>(d);
  return b.transpose(make(b.transpose(x, outermost)), back);
}

}  // namespace heddle::hlo
