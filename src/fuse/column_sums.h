// Private to fuse: reductions over the rows of a product that another kernel would read again
// become a part of the product's kernel (schedule/column_sums.h).
#pragma once

#include "fuse/group_merger.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members.
void merge_column_sums(const Grouped& grouped);

}  // namespace heddle::fuse
