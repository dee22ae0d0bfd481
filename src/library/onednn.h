// Private to library: implements library.h with oneDNN.
#pragma once

#include <memory>

#include "library/library.h"
#include "library/onednn_api.h"

namespace heddle::library::onednn {

// Null and the reason if it cannot be used. `path` empty: the usual names.
Opened open_library(const std::string& path, const target::Target& target);

}  // namespace heddle::library::onednn
