// Parameters of networks, and gradients that are added to them, as arrays of Python.
#pragma once
#include "bindings/convert.h"

namespace bothost::python {

template <class T>
class ParameterArrays {
 public:
  /// Throws TypeError or InvalidInput unless these are float32 arrays of the shapes. Arrays to write to are
  /// taken as they are: gradients of a converted copy would be lost.
  ParameterArrays(const nb::sequence& given, const std::vector<std::vector<std::size_t>>& shapes) {
    if (nb::len(given) != shapes.size())
      throw InvalidInput(std::to_string(shapes.size()) + " parameters are needed, not " +
                         std::to_string(nb::len(given)));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string which = "parameter " + std::to_string(i);
      Array<T> array;
      if (!nb::try_cast(given[i], array, std::is_const_v<T>))
        throw nb::type_error((which + ": a C-contiguous float32 array on the CPU is needed").c_str());
      if (!has_shape(array, shapes[i]))
        throw InvalidInput(which + ": shape " + shape_text(shapes[i]) + " is needed");
      data_.push_back(array.data());
      kept_.push_back(std::move(array));
    }
  }
  std::span<T* const> data() const { return data_; }

 private:
  std::vector<T*> data_;
  std::vector<Array<T>> kept_;
};

}  // namespace bothost::python
