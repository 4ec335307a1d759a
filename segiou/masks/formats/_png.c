/* Python's entry points to the decoder of plain PNG files. */
#include "../../_support/_python.h"

#include "_png_file.h"

/* As long as the file, which has the palette, is in memory. */
static PyObject *
size_and_mode(const PngImage *image)
{
    return Py_BuildValue("nnsy#", (Py_ssize_t)image->height, (Py_ssize_t)image->width, image->mode,
                         (const char *)image->palette, (Py_ssize_t)image->palette_size);
}

static PyObject *
decode_file(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer file, memory;
    PngImage image;
    int done;
    if (!PyArg_ParseTuple(args, "y*w*:read_png", &file, &memory)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    done = read_png(file.buf, (size_t)file.len, (size_t)memory.len, memory.buf, &image);
    Py_END_ALLOW_THREADS
    PyObject *result = done ? size_and_mode(&image) : Py_NewRef(Py_None);
    PyBuffer_Release(&file);
    PyBuffer_Release(&memory);
    return result;
}

PyDoc_STRVAR(read_png_doc,
"read_png(file, memory, /)\n--\n\n"
"Decode a plain PNG file at the beginning of memory: one byte per pixel, an aligned uint16\n"
"for 16 bits, or for colours an aligned uint32, red + 256 green + 65536 blue.\n\n"
"Height, width, Pillow's mode and the palette; None where the file is not plain, is damaged, or\n"
"needs more memory: for its pixels and 64 bytes.");

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#define MOST_BYTES (1 << 18) /* of a small file */

static int64_t
nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* A small regular file, older than a tick of the clock, so that later writes change its time. */
static int
is_small(const struct stat *found, int64_t tick)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = nanoseconds(now) - nanoseconds(found->st_mtim);
    return S_ISREG(found->st_mode) && found->st_size <= MOST_BYTES && age >= tick;
}

static int
is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino
        && one->st_size == other->st_size
        && nanoseconds(one->st_mtim) == nanoseconds(other->st_mtim)
        && nanoseconds(one->st_ctim) == nanoseconds(other->st_ctim);
}

/* Whether exactly the whole file was read; requests one extra byte to detect growth. */
static int
fill(int handle, char *content, const struct stat *expected)
{
    struct stat after;
    ssize_t size = read(handle, content, (size_t)expected->st_size + 1);
    return size == expected->st_size && fstat(handle, &after) == 0 && is_same(expected, &after);
}

/* The content, to be freed, of a small file that did not change meanwhile; otherwise NULL. */
static char *
take_content(const char *path, int64_t tick, struct stat *found)
{
    /* Checked first, because a pipe must never be opened. */
    if (stat(path, found) != 0 || !is_small(found, tick)) {
        return NULL;
    }
    int handle = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0) {
        return NULL;
    }
    /* Checked again, because another file may have taken its place. */
    int small = fstat(handle, found) == 0 && is_small(found, tick);
    char *content = small ? malloc((size_t)found->st_size + 1) : NULL;
    if (content != NULL && !fill(handle, content, found)) {
        free(content);
        content = NULL;
    }
    close(handle);
    return content;
}

/* Each system call from Python releases the interpreter lock and acquires it again. If several
 * threads read small files, waiting for the lock would take longer than reading. */
static PyObject *
read_small(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path;
    long long tick;
    Py_buffer memory;
    if (!PyArg_ParseTuple(args, "O&Lw*:read_small", PyUnicode_FSConverter, &path, &tick, &memory)) {
        return NULL;
    }
    const char *name = PyBytes_AsString(path);
    struct stat found;
    PngImage image;
    char *content;
    int done;
    Py_BEGIN_ALLOW_THREADS
    content = take_content(name, tick, &found);
    done = content != NULL
        && read_png(content, (size_t)found.st_size, (size_t)memory.len, memory.buf, &image);
    Py_END_ALLOW_THREADS
    PyObject *result;
    if (content == NULL) {
        result = Py_NewRef(Py_None);
    } else {
        Py_ssize_t size = (Py_ssize_t)found.st_size;
        PyObject *mask = done ? size_and_mode(&image) : PyBytes_FromStringAndSize(content, size);
        result = Py_BuildValue("NnL", mask, size, (long long)nanoseconds(found.st_mtim));
    }
    free(content);
    Py_DECREF(path);
    PyBuffer_Release(&memory);
    return result;
}

PyDoc_STRVAR(read_small_doc,
"read_small(path, tick, memory, /)\n--\n\n"
"The content, size and modification time in ns of a regular file of at most 256 KiB that\n"
"was written at least `tick` ns ago and does not change meanwhile; None for all other files\n"
"and on errors. A plain PNG file is decoded as by read_png(), whose result is its content.");
#endif

static PyMethodDef methods[] = {
    {"read_png", decode_file, METH_VARARGS, read_png_doc},
#if !defined(_WIN32)
    {"read_small", read_small, METH_VARARGS, read_small_doc},
#endif
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE_WITH(fill_checksums, _png, "Plain PNG files, decoded in C.")
