// The content of a module's weights as a hash. Reading hundreds of megabytes takes longer than all
// else that a program of the cache needs, so what was found of a file's arrays is kept in the
// cache, by the file's identity and the arrays' places in it.
//
// Which mapped file an array lies in, the kernel tells (/proc/self/maps). Its identity is all that
// the file system changes when its bytes change: device, inode, path, size, and the times of the
// last write and of the last change, which no program can set back. A file that was changed less
// than kSettledSeconds ago has none, nor has one that is gone or lies under an overlay: it is read.
#pragma once

#include <span>

#include "base/hash.h"
#include "cache/object_cache.h"
#include "tensor/literal.h"

namespace heddle::compiler {

// Who has mapped a file to write to it changes its times with the first write to a page; later ones
// do not show until the page has been written back, after half a minute or so.
inline constexpr int kSettledSeconds = 60;

// Of `weights` (arrays) in order, whatever memory they lie in and however many threads read it.
Hash128 hash_of_weights(std::span<const tensor::Literal> weights, int threads,
                        cache::ObjectCache& cache, int settled_seconds = kSettledSeconds);

}  // namespace heddle::compiler
