#!/usr/bin/python3
"""Print what each kernel of the cubins in a module takes: registers, and bytes of the stack of a thread (spills and local arrays).

    usage.py MODULE.tec        # NAME REGISTERS STACK, a line for each kernel

Read from the attributes of the sections .nv.info: kind, attribute, size, then (symbol, value) of each function.
"""
import struct, sys

REGISTERS, FRAME = 0x2F, 0x11
EM_CUDA = 190


def sections(data, at):
    """(name, type, bytes) of the ELF file that begins there."""
    e_shoff, = struct.unpack_from("<Q", data, at + 40)
    size, count, names = struct.unpack_from("<HHH", data, at + 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + e_shoff + i * size) for i in range(count)]
    strings = at + heads[names][4]
    for head in heads:
        start = strings + head[0]
        yield data[start:data.index(b"\0", start)].decode(), head[1], data[at + head[4]:at + head[4] + head[5]]


def usage(data, at):
    """{kernel: {attribute: value}} of a cubin."""
    parts = list(sections(data, at))
    strings = next(body for name, _, body in parts if name == ".strtab")
    symbols = next(body for name, _, body in parts if name == ".symtab")
    found = {}
    for name, _, body in parts:
        if name != ".nv.info":
            continue
        i = 0
        while i + 4 <= len(body):
            form, attribute, size = struct.unpack_from("<BBH", body, i)
            i += 4
            if form != 4:
                continue
            if attribute in (REGISTERS, FRAME):
                symbol, value = struct.unpack_from("<II", body, i)
                start, = struct.unpack_from("<I", symbols, symbol * 24)
                kernel = strings[start:strings.index(b"\0", start)].decode()
                found.setdefault(kernel, {})[attribute] = value
            i += size
    return found


data = open(sys.argv[1], "rb").read()
at = data.find(b"\x7fELF", 1)
while at >= 0:
    if struct.unpack_from("<H", data, at + 18)[0] == EM_CUDA:
        for kernel, of in sorted(usage(data, at).items()):
            print(kernel, of.get(REGISTERS, 0), of.get(FRAME, 0))
    at = data.find(b"\x7fELF", at + 1)
