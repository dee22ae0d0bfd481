// Shared by the attention operators of com.microsoft.
#pragma once

#include "import/onnx_emit.h"

namespace heddle::import::contrib {

struct Core {
  Instr *q = nullptr, *k = nullptr, *v = nullptr;  // [B,N,S,D], [B,M,T,D], [B,M,T,E]; M divides N
  double scale = 0;                                // 0: 1 / sqrt(D)
  double cap = 0;                                  // 0: none
  Instr* added = nullptr;                          // to the scores; broadcasts to [B,N,S,T]
  Instr* sink = nullptr;                           // [N]: one more score, without a key
  Instr* allowed = nullptr;                        // pred; broadcasts to [B,N,S,T]. Null: all
};
Instr* attend(Op& op, const Core& core);  // [B,S,N*E]

// [B,S,N*D] as [B,N,S,D].
Instr* split_heads(Op& op, Instr* x, int64_t heads, const char* what);
// x[..., from:to]
Instr* columns(Op& op, Instr* x, int64_t from, int64_t to);
Instr* both(Op& op, Instr* a, Instr* b);  // and; null means true
// Fails if an unsupported input is given.
void refuse(Op& op, size_t input, const char* name);

}  // namespace heddle::import::contrib
