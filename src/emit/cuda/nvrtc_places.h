// Private to emit/cuda: where NVRTC may be. Looks at files only: no Python is started.
#pragma once

#include <string>
#include <vector>

namespace heddle::emit::cuda {

// The inputs of the search, from the process's environment.
struct Surroundings {
  std::string named;        // HEDDLE_NVRTC: a file, or a folder with one
  std::string virtual_env;  // VIRTUAL_ENV
  std::string path;         // PATH
  std::string home;         // HOME
  std::string root = "/";   // where /usr/local/cuda* is looked for
};
Surroundings surroundings();

struct NvrtcPlaces {
  std::vector<std::string> files;  // to be opened, best first; those without a folder by the loader
  std::string tried;               // every place that was looked at, for a message
};

// HEDDLE_NVRTC alone, if set. Else in this order: the nvidia packages of `environment` (a folder
// with bin/ and lib/), of VIRTUAL_ENV and of the first python3 on PATH; /usr/local/cuda*, the
// newest first; the loader's path. Of several versions in a folder the newest.
NvrtcPlaces nvrtc_places(const Surroundings& where, const std::string& environment = {});

}  // namespace heddle::emit::cuda
