// Pieces of kernel text that messages use too.
#pragma once

#include <string>
#include <string_view>

#include "kernel/kernel.h"

namespace heddle::kernel {

std::string_view loop_text(LoopKind kind);
std::string_view space_text(Space space);
std::string_view access_text(Access access);

// "buffer x: f32[4096,n] global in"
std::string buffer_text(const Kernel& kernel, const Buffer& buffer);

// The statement without its body, on one line, cut at about 160 characters.
std::string head_text(const Kernel& kernel, const Stmt& stmt);
// An expression, likewise.
std::string expr_text(const Kernel& kernel, ExprId expr);

}  // namespace heddle::kernel
