// Files that a command reads and writes. No output is a file that was read, all outputs are checked
// before the work, and nothing is at an output's path before all of it is written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::tools {

// An output that an option names. It is written under another name, in the same folder, and renamed
// at the end; a symbolic link stays and its file is replaced. What is no regular file (a pipe,
// /dev/stdout) gets the bytes at the end. One thread.
class OutputFile {
 public:
  explicit OutputFile(std::string default_path = "") : path(std::move(default_path)) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;

  std::string path;  // as given; empty: nothing is written. "-": standard output
  bool given() const { return !path.empty(); }
  bool is_standard_output() const { return path == "-"; }
  bool is_special() const { return special_; }              // no regular file
  const std::string& target() const { return target_; }  // of a prepared one: its absolute path

  // Finds out whether it can be written. Before anything else of this class. Errors: user (a folder,
  // too long a name) and machine.
  Status prepare(const std::string& option);
  // Writes all of `text`. May be called again. Error (machine): cannot be written; what was there
  // before is then still there.
  Status write(std::string_view text) const;
  // For functions that write to a path: they write to work_path(), and publish() takes what they
  // returned; where they failed, nothing is left behind.
  const std::string& work_path() const { return work_path_; }
  Status publish(Status written) const;

 private:
  Status prepare_special(int code);
  Status prepare_regular(unsigned mode);
  int open_special() const;
  Error cannot_write(int code) const;

  std::string option_;
  std::string target_;     // what is replaced or opened: the path, its links followed
  std::string work_path_;  // beside it, or in the folder for temporary files
  bool special_ = false;
  int stream_ = -1;    // the descriptor of standard output or error, where the path leads there
  unsigned mode_ = 0;  // of the file that is replaced; 0: there is none
};

// What the options of a command name. The paths are read when prepare() is called.
class FileUse {
 public:
  // add(what, path) for every file that is read: ("MODEL", "m.onnx"); an empty path is none.
  using Add = std::function<void(const std::string& what, const std::string& path)>;

  void reads(std::function<void(const Add&)> all) { reads_.push_back(std::move(all)); }
  void writes(std::string option, OutputFile* file) { files_.push_back({std::move(option), file}); }
  void writes_folder(std::string option, const std::string* path) {
    folders_.push_back({std::move(option), path});
  }

  // Errors: user (an output is a file that is read, or another output), machine (cannot be written).
  Status prepare() const;
  // The same of a file that was found to be read later, as external data of a model.
  Status check_read(const std::string& what, const std::string& path) const;

 private:
  struct File {
    std::string option;
    OutputFile* file;
  };
  struct Folder {
    std::string option;
    const std::string* path;
  };
  std::vector<std::function<void(const Add&)>> reads_;
  std::vector<File> files_;
  std::vector<Folder> folders_;
};

}  // namespace heddle::tools
