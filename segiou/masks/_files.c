/* Reads and decodes several small files per call, without the interpreter lock.
 *
 * Each system or zlib call from Python releases the lock and acquires it again. If several threads
 * read small files, waiting for the lock takes longer than reading. Files that are not plain give
 * None, and Python reads them.
 */
#include "../_support/_python.h"

#if !defined(_WIN32)

#include "_png_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#define MOST_BYTES (1 << 18) /* of a file */
#define SECOND INT64_C(1000000000)

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

/* A small regular file, older than a tick of the clock, so that later writes change its time. */
static int is_plain(const struct stat *found, int64_t tick)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = nanoseconds(now) - nanoseconds(found->st_mtim);
    return S_ISREG(found->st_mode) && found->st_size <= MOST_BYTES && age >= tick;
}

static int is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
           one->st_size == other->st_size &&
           nanoseconds(one->st_mtim) == nanoseconds(other->st_mtim) &&
           nanoseconds(one->st_ctim) == nanoseconds(other->st_ctim);
}

/* Whether exactly the whole file was read; requests one extra byte to detect growth. */
static int fill(int handle, char *content, const struct stat *expected)
{
    struct stat after;
    ssize_t size = read(handle, content, (size_t)expected->st_size + 1);
    return size == expected->st_size && fstat(handle, &after) == 0 && is_same(expected, &after);
}

/* The content, to be freed, of a file that did not change meanwhile; otherwise NULL. */
static char *read_plain(const char *path, int64_t tick, struct stat *found)
{
    /* Checked first, because a pipe must never be opened. */
    if (stat(path, found) != 0 || !is_plain(found, tick))
        return NULL;
    int handle = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0)
        return NULL;
    /* Checked again, because another file may have taken its place. */
    int plain = fstat(handle, found) == 0 && is_plain(found, tick);
    char *content = plain ? malloc((size_t)found->st_size + 1) : NULL;
    if (content != NULL && !fill(handle, content, found)) {
        free(content);
        content = NULL;
    }
    close(handle);
    return content;
}

typedef struct {
    PyObject *path; /* bytes */
    const char *name; /* what they hold */
    char *content;
    struct stat found;
    int is_decoded; /* the pixels are at `offset` */
    size_t offset;
    PngImage image;
} File;

static PyObject *as_result(const File *file)
{
    if (file->content == NULL)
        return Py_NewRef(Py_None);
    Py_ssize_t size = (Py_ssize_t)file->found.st_size;
    long long modified = nanoseconds(file->found.st_mtim);
    if (!file->is_decoded)
        return Py_BuildValue("y#nL", file->content, size, size, modified);
    return Py_BuildValue("(nnns)nL", (Py_ssize_t)file->offset, (Py_ssize_t)file->image.height,
                         (Py_ssize_t)file->image.width, file->image.mode, size, modified);
}

/* -1 if an object is not a path; paths that no file can have stay NULL. */
static int encode_paths(PyObject *paths, File *files, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *path = PySequence_GetItem(paths, i);
        int encoded = path != NULL && PyUnicode_FSConverter(path, &files[i].path);
        Py_XDECREF(path);
        files[i].name = encoded ? PyBytes_AsString(files[i].path) : NULL;
        if (!encoded && !PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    return 0;
}

static PyObject *as_list(const File *files, Py_ssize_t count)
{
    PyObject *results = PyList_New(count);
    for (Py_ssize_t i = 0; results != NULL && i < count; i++) {
        PyObject *result = as_result(&files[i]);
        if (result == NULL || PyList_SetItem(results, i, result) < 0)
            Py_CLEAR(results);
    }
    return results;
}

static PyObject *read_small(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *paths;
    long long tick;
    Py_buffer memory;
    if (!PyArg_ParseTuple(args, "OLw*:read_small", &paths, &tick, &memory))
        return NULL;
    PyObject *results = NULL;
    Py_ssize_t count = PySequence_Size(paths);
    File *files = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *files);
    if (files != NULL && encode_paths(paths, files, count) == 0) {
        Py_BEGIN_ALLOW_THREADS
        PngReader *reader = open_reader();
        size_t room = (size_t)memory.len;
        size_t used = 0; /* by pixels, aligned for those of colours */
        for (File *file = files; file < files + count; file++) {
            if (file->name != NULL)
                file->content = read_plain(file->name, tick, &file->found);
            file->offset = used;
            file->is_decoded = reader != NULL && file->content != NULL && used < room &&
                read_png(reader, (const uint8_t *)file->content, (size_t)file->found.st_size,
                         room - used, (uint8_t *)memory.buf + used, &file->image);
            if (file->is_decoded)
                used += (file->image.height * file->image.width * file->image.pixel_bytes + 3) / 4 * 4;
        }
        close_reader(reader);
        Py_END_ALLOW_THREADS
        results = as_list(files, count);
    } else if (files == NULL && count >= 0) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; files != NULL && i < count; i++) {
        Py_XDECREF(files[i].path);
        free(files[i].content);
    }
    PyMem_Free(files);
    PyBuffer_Release(&memory);
    return results;
}

PyDoc_STRVAR(read_small_doc,
             "read_small(paths, tick, pixels, /)\n--\n\n"
             "For each path: content, size and modification time in ns of a regular file of at\n"
             "most 256 KiB that was written at least `tick` ns ago and does not change\n"
             "meanwhile. None for all other files and on errors.\n\n"
             "pixels: memory for the pixels of plain PNG files, as read_png() decodes them. Decoded\n"
             "files have (offset in bytes, height, width, Pillow mode) as content.");

#endif

static PyMethodDef methods[] = {
#if !defined(_WIN32)
    {"read_small", read_small, METH_VARARGS, read_small_doc},
#endif
    {NULL, NULL, 0, NULL},
};

#if defined(_WIN32)
DEFINE_MODULE(_files, NULL)
#else
DEFINE_MODULE_WITH(fill_checksums, _files, "Reads small files without the interpreter lock.")
#endif
