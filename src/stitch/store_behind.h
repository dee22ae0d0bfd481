// Private to stitch: the last sweep of a row, which stores past the caches what lies in scratch,
// goes into the sweep that fills this scratch for the row behind it.
#pragma once

#include "kernel/kernel.h"
#include "target/target.h"

namespace heddle::stitch {

// Memory takes streamed lines slower than a core that only copies makes them, and is idle while a
// core computes: done together they take little more than the longer of both. A task becomes
// several rows; its first row is computed and its last one stored by itself. Nothing changes where
// the last sweep computes functions itself, where what it reads is not filled element by element,
// where rows are short or begin with much arithmetic, or where there would be too few tasks for the
// target's cores.
void store_rows_behind(kernel::Kernel* kernel, kernel::Group* group, const target::Target& target);

}  // namespace heddle::stitch
