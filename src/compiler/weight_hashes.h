// A hash of the content of a module's weights. Reading hundreds of megabytes takes longer than all
// else that a program of the cache needs, so the hashes of a file's arrays are kept in the cache,
// by the file's identity and the arrays' offsets in it.
//
// /proc/self/maps tells which mapped file an array is in. The identity of a file is all that the
// file system changes when its bytes change: device, inode, path, size, and the times of the last
// write and of the last change, which no program can set back. A file has no identity if it was
// changed less than kSettledSeconds ago, is gone, or is under an overlay: then it is read.
#pragma once

#include <span>

#include "base/hash.h"
#include "cache/object_cache.h"
#include "tensor/literal.h"

namespace heddle::compiler {

// Writing through a mapping changes a file's times at the first write to a page; later writes do
// not until the page has been written back, after half a minute or so.
inline constexpr int kSettledSeconds = 60;

// The hash of `weights` (arrays) in order, wherever they are in memory and however many threads
// read them.
Hash128 hash_of_weights(std::span<const tensor::Literal> weights, int threads,
                        cache::ObjectCache& cache, int settled_seconds = kSettledSeconds);

}  // namespace heddle::compiler
