// The Python module `condmeta.native._core`.

#include "arrays.h"

void bind_inner(nb::module_& m);
void bind_meta(nb::module_& m);
void bind_grid(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() = "Compiled twins of condmeta's hot functions; see the NumPy definitions of the same names.";
    bind_inner(m);
    bind_meta(m);
    bind_grid(m);
    m.def("instruction_set", &instruction_set, "Return the instruction set chosen for this machine.");
}
