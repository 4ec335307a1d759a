/* Python headers and module slots shared by all extensions.
 *
 * The limited API lets one build serve Python 3.11 and all later versions. Free-threaded builds
 * of Python have no limited API. */
#ifndef SEGIOU_PYTHON_H
#define SEGIOU_PYTHON_H

#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdarg.h>
#include <stdint.h>

/* Raises an error, its message formatted as by PyErr_Format; returns -1. */
static inline int refuse(PyObject *error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyErr_FormatV(error, format, values);
    va_end(values);
    return -1;
}

/* A slot's value; ISO C converts functions to data pointers only by way of integers. */
#define SLOT_FUNCTION(function) ((void *)(uintptr_t)(function))

/* As in optional.py: increase both when the interface of a compiled module changes. */
static inline int add_interface(PyObject *module)
{
    return PyModule_AddIntConstant(module, "INTERFACE", 7);
}

/* No module keeps state that calls change: any thread of any interpreter may use it. */
#ifdef Py_mod_gil
#define SLOTS_WITHOUT_STATE                                                                   \
    {Py_mod_exec, SLOT_FUNCTION(add_interface)},                                              \
        {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},                     \
        {Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}
#else
#define SLOTS_WITHOUT_STATE {Py_mod_exec, SLOT_FUNCTION(add_interface)}, {0, NULL}
#endif

/* A module of the methods above, with a function that runs when it is imported. */
#define DEFINE_MODULE_WITH(START, NAME, DOC)                                                       \
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, SLOT_FUNCTION(START)}, SLOTS_WITHOUT_STATE};  \
    static PyModuleDef definition = {                                                              \
        PyModuleDef_HEAD_INIT, .m_name = #NAME, .m_doc = DOC, .m_methods = methods,                \
        .m_slots = slots,                                                                          \
    };                                                                                             \
    PyMODINIT_FUNC PyInit_##NAME(void) { return PyModuleDef_Init(&definition); }

static inline int start_nothing(PyObject *Py_UNUSED(module)) { return 0; }
#define DEFINE_MODULE(NAME, DOC) DEFINE_MODULE_WITH(start_nothing, NAME, DOC)

#endif
