"""Tests of the package, with unittest: python -m unittest discover python/tests.

They need TEC_TEST_MODULE (tests/models/digits as a module), TEC_TEST_MODEL (its ONNX file), TEC_TEST_FUNCTION (a module with
one function: C = A times B, f32[n, 4] by f32[4, 3]), and TEC_LIBRARY for those that compile. TEC_TEST_OPENCL=1 says that there
is an OpenCL device.
"""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import tec
from tec import _arrays

MODULE = os.environ["TEC_TEST_MODULE"]
MODEL = os.environ["TEC_TEST_MODEL"]
FUNCTION = os.environ["TEC_TEST_FUNCTION"]
OPENCL = os.environ.get("TEC_TEST_OPENCL") == "1"


def images(n):
    return np.random.default_rng(n).random((n, 1, 8, 8), np.float32)


class Models(unittest.TestCase):
    def setUp(self):
        self.model = tec.load(MODULE)

    def test_describes_inputs_and_outputs(self):
        self.assertEqual(self.model.inputs[0], ("input", "float32", (None, 1, 8, 8), "f32[batch, 1, 8, 8]"))
        self.assertEqual(self.model.outputs[0].shape, (None, 10))
        self.assertIn("f32[batch, 1, 8, 8]", repr(self.model))
        self.assertIn("llvm", self.model.target)

    def test_runs_by_position_and_by_name_with_any_batch(self):
        for n in (8, 1, 33, 8):
            x = images(n)
            y = self.model(x)["output"]
            self.assertEqual(y.shape, (n, 10))
            np.testing.assert_array_equal(y, self.model(input=x)["output"])
        np.testing.assert_allclose(
            self.model(images(8)[:3])["output"], self.model(images(8))["output"][:3], rtol=1e-4, atol=1e-5
        )

    def test_outputs_of_earlier_calls_stay(self):
        first = self.model(images(4))["output"]
        copy = first.copy()
        self.model(images(4) + 1)
        np.testing.assert_array_equal(first, copy)

    def test_takes_arrays_with_strides_and_read_only_ones(self):
        x = images(6)
        expected = self.model(x)["output"]
        np.testing.assert_array_equal(self.model(np.asfortranarray(x))["output"], expected)
        np.testing.assert_array_equal(
            self.model(np.concatenate([x, x])[::2])["output"][:3], self.model(x[::2])["output"]
        )
        x.flags.writeable = False
        np.testing.assert_array_equal(self.model(x)["output"], expected)
        np.testing.assert_array_equal(
            self.model(x.tolist() and np.array(x.tolist(), np.float32))["output"], expected
        )

    def test_reads_and_writes_where_the_arrays_are(self):
        x, y = images(5), np.empty((5, 10), np.float32)
        results = self.model.run({"input": x}, outputs={"output": y})
        self.assertIs(results["output"], y)
        np.testing.assert_array_equal(y, self.model(x)["output"])

    def test_names_what_is_wrong(self):
        for wrong, words in (
            (lambda: self.model(images(2).astype(np.float64)), "input 'input': expected f32"),
            (lambda: self.model(np.zeros((2, 1, 8, 9), np.float32)), "input"),
            (lambda: self.model.run([images(2)]), "expected the inputs by name, as {'input': ...}, found a list"),
            (lambda: self.model(image=images(2)), "no input is called 'image'; there are input"),
            (lambda: self.model(), "missing input 'input': f32[batch, 1, 8, 8]"),
            (lambda: self.model(images(2), images(2)), "expected at most 1 inputs (input), found 2"),
            (lambda: self.model(images(2), input=images(2)), "input 'input' is given twice"),
            (lambda: self.model(np.array(["text"])), "expected integers, floats or booleans"),
            (
                lambda: self.model.run({"input": images(2)}, outputs={"y": np.empty(1)}),
                "no output is called 'y'",
            ),
            (
                lambda: self.model.run(
                    {"input": images(2)}, outputs={"output": np.empty((3, 10), np.float32)}
                ),
                "output",
            ),
            (lambda: self.model.profile(), "profile=True"),
            (
                lambda: tec.load(MODULE, threads=-1),
                "threads: expected 0 (all) or a positive number, found -1",
            ),
            (lambda: tec.load(MODULE, "other"), "other"),
        ):
            with self.assertRaises(tec.InvalidInput) as caught:
                wrong()
            self.assertIn(words, str(caught.exception))
            self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(self.model(images(2))["output"].shape, (2, 10))

    def test_ends_at_its_deadline(self):
        model = tec.load(MODULE, deadline=1e-9)
        for _ in range(2):
            with self.assertRaisesRegex(tec.Error, "the time limit of the run is reached"):
                model(images(8))
        tec.load(MODULE, deadline=100, max_steps=1)(images(8))
        with self.assertRaisesRegex(tec.InvalidInput, "limits of a run that are not negative"):
            tec.load(MODULE, max_steps=-1)

    def test_names_its_device_and_stream(self):
        expected = self.model(images(2))["output"]
        np.testing.assert_array_equal(tec.load(MODULE, device="cpu")(images(2))["output"], expected)
        for options, words in (
            ({"device": "cpu:1"}, "there is no device 'cpu:1': this machine has 1 of that kind"),
            ({"stream": 7}, "expected a device with the stream, found none"),
            ({"stream": 7, "device": "cpu"}, "cpu:0: has no streams, but the options name one"),
        ):
            with self.assertRaisesRegex(tec.InvalidInput, words):
                tec.load(MODULE, **options)

    def test_tells_the_owner_of_an_array_which_stream_reads_it(self):
        class Owner:  # says that its array lies on a GPU, and notes what it is told
            def __init__(self, array, kind):
                self.array, self.kind, self.told = array, kind, None

            def __dlpack_device__(self):
                return self.kind, 0

            def __dlpack__(self, **told):
                self.told = told.get("stream", "nothing")
                return self.array.__dlpack__()

        for kind, stream, told in ((2, None, 1), (2, 77, 77), (4, None, "nothing"), (1, 77, "nothing")):
            owner = Owner(self.model.run({"input": images(2)})["output"], kind)
            _arrays.view(owner, stream=stream)
            self.assertEqual(owner.told, told)

    def test_a_file_that_is_not_there_or_no_module(self):
        with self.assertRaises(tec.InputOutputError):
            tec.load("nowhere.tec")
        with self.assertRaises(tec.Error):
            tec.load(MODEL)

    def test_profile(self):
        model = tec.load(MODULE, profile=True)
        for _ in range(3):
            model(images(4))
        profile = model.profile()
        self.assertTrue(all(row.calls == 3 for row in profile))
        self.assertAlmostEqual(sum(row.share for row in profile), 1, places=5)
        self.assertIn("median ms", str(profile))
        model.reset_profile()
        self.assertTrue(all(row.calls == 0 for row in model.profile()))

    def test_many_threads_share_a_model(self):
        inputs = [images(n) for n in range(1, 9)]
        expected = [self.model(x)["output"] for x in inputs]
        wrong = []

        def work(k):
            for _ in range(20):
                if not np.array_equal(self.model(inputs[k])["output"], expected[k]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_other_threads_run_while_a_model_does(self):
        x, stop, ticks, during = images(20000), threading.Event(), [0], []

        def tick():
            while not stop.is_set():
                ticks[0] += 1

        thread = threading.Thread(target=tick)
        thread.start()
        for _ in range(3):
            before = ticks[0]
            self.model(x)
            during.append(ticks[0] - before)
        stop.set()
        thread.join()
        self.assertGreater(max(during), 100)


class Tensors(unittest.TestCase):
    def setUp(self):
        self.model = tec.load(MODULE)
        self.tensor = self.model.run({"input": images(3)})["output"]

    def test_share_their_memory_and_outlive_their_model(self):
        expected = self.model(images(3))["output"]
        a, b = np.asarray(self.tensor), (
            np.from_dlpack(self.tensor) if hasattr(np, "from_dlpack") else self.tensor.numpy()
        )
        self.assertEqual(a.ctypes.data, b.ctypes.data)
        del self.tensor, self.model
        gc.collect()
        np.testing.assert_array_equal(a, expected)
        np.testing.assert_array_equal(b, expected)

    def test_capsules_that_nobody_takes_are_given_back(self):
        for version in (None, (1, 0)):
            capsule = self.tensor.__dlpack__(max_version=version)
            del capsule
        self.assertEqual(self.tensor.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            self.tensor.__dlpack__(stream=1)

    def test_go_into_a_model(self):
        function = tec.load_function(FUNCTION)
        wrong = tec.load(MODULE)
        with self.assertRaises(tec.InvalidInput):
            wrong(self.tensor)
        with self.assertRaises(tec.InvalidInput):
            function(self.tensor)


class Functions(unittest.TestCase):
    def test_multiply(self):
        function = tec.load_function(FUNCTION)
        a, b, c = images(2).reshape(-1, 4), np.ones((4, 3), np.float32), np.empty((32, 3), np.float32)
        function(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        self.assertEqual(function.params[0], "A: f32[n, 4]")

    def test_tell_their_parameters(self):
        a, b, c = tec.load_function(FUNCTION).specs
        self.assertEqual(a, tec.ParamSpec("A", "float32", (None, 4), "f32[n, 4]", False, False))
        self.assertEqual((b.name, b.shape, b.is_output), ("B", (4, 3), False))
        self.assertEqual((c.name, c.shape, c.is_output), ("C", (None, 3), True))

    def test_open_from_bytes(self):
        with open(FUNCTION, "rb") as file:
            data = file.read()
        function = tec.load_function(data)
        c = np.empty((2, 3), np.float32)
        function(np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), c)
        np.testing.assert_array_equal(c, np.full((2, 3), 4, np.float32))
        with open(MODULE, "rb") as file:
            model = tec.load(file.read())
        np.testing.assert_array_equal(model(images(4))["output"], tec.load(MODULE)(images(4))["output"])
        with self.assertRaises(tec.InvalidInput) as caught:
            tec.load_function(data[:-1])
        self.assertIn("module in memory", str(caught.exception))

    def test_names_the_parameter_that_is_wrong(self):
        function = tec.load_function(FUNCTION)
        with self.assertRaises(tec.InvalidInput) as caught:
            function(np.ones((2, 4), np.float32), np.ones((4, 4), np.float32), np.ones((2, 3), np.float32))
        self.assertIn("B", str(caught.exception))


RIVAL = """
#include <stdint.h>
static void multiply(void *const *args, const int64_t *dims, float more)
{
    const float *a = args[0], *b = args[1];
    for (int64_t y = 0; y < dims[0]; y++)
        for (int x = 0; x < 3; x++) {
            float sum = more;
            for (int k = 0; k < 4; k++)
                sum += a[4 * y + k] * b[3 * k + x];
            ((float *)args[2])[3 * y + x] = sum;
        }
}
int32_t right(const void *env, void *const *args, const int64_t *dims) { multiply(args, dims, 0); return 0; }
int32_t wrong(const void *env, void *const *args, const int64_t *dims) { multiply(args, dims, 1); return 0; }
"""


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class RivalFunctions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source, cls.library = (os.path.join(cls.folder.name, name) for name in ("rival.c", "rival.so"))
        with open(source, "w") as file:
            file.write(RIVAL)
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", cls.library], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_run_where_they_are_faster(self):
        rivals = [tec.Rival("product", self.library, "right", [1, 2, 16])]
        product = tec.load_function(FUNCTION, rivals=rivals)
        self.assertEqual(len(product.rivals.faster), 1)
        self.assertIn(product.rivals.faster[0], range(4))
        a, b = images(1).reshape(16, 4), np.arange(12, dtype=np.float32).reshape(4, 3)
        c = np.empty((16, 3), np.float32)
        product(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)

    def test_that_compute_something_else_are_refused(self):
        with self.assertRaisesRegex(tec.InvalidInput, "another 'C' than the kernel for 1"):
            tec.load_function(FUNCTION, rivals=[tec.Rival("product", self.library, "wrong")])
        with self.assertRaisesRegex(tec.InvalidInput, "has no function 'none'"):
            tec.load_function(FUNCTION, rivals=[tec.Rival("product", self.library, "none")])
        with self.assertRaisesRegex(tec.InvalidInput, "has no function 'none'"):
            tec.load(MODULE, rivals=[tec.Rival("none", self.library, "right")])
        with self.assertRaises(OSError):
            tec.load(MODULE, rivals=[tec.Rival("none", self.library + "x", "right")])


@unittest.skipUnless(os.environ.get("TEC_LIBRARY"), "TEC_LIBRARY is not set")
class Compiling(unittest.TestCase):
    def test_gives_the_same_as_the_module(self):
        expected = tec.load(MODULE)(images(4))["output"]
        np.testing.assert_array_equal(tec.compile(MODEL)(images(4))["output"], expected)
        with tempfile.TemporaryDirectory() as folder:
            fixed = os.path.join(folder, "fixed.tec")
            model = tec.compile(MODEL, fixed, dims={"batch": 4})
            self.assertEqual(model.inputs[0].shape, (4, 1, 8, 8))
            self.assertEqual(tec.load(fixed).inputs, model.inputs)

    def test_makes_versions_for_remainders(self):
        model = tec.compile(MODEL, dispatch="batch%4")
        plain = tec.load(MODULE)
        for n in range(1, 9):
            np.testing.assert_allclose(
                model(images(n))["output"], plain(images(n))["output"], rtol=1e-4, atol=1e-5
            )
        with self.assertRaisesRegex(tec.InvalidInput, "no product or convolution of the host has this symbol"):
            tec.compile(MODEL, dispatch="other%4")

    def test_errors_are_exceptions(self):
        with self.assertRaises(tec.Error):
            tec.compile(MODULE)
        with self.assertRaises(tec.Error):
            tec.compile("nowhere.onnx")
        with self.assertRaises(tec.InvalidInput):
            tec.compile(MODEL, target="llvm -mcpu=abacus")

    def test_limits_are_named(self):
        with self.assertRaises(tec.Error) as caught:
            tec.compile(MODEL, limits={"nodes": 3})
        self.assertIn("the limit 'nodes' is 3", str(caught.exception))
        with self.assertRaises(tec.InvalidInput):
            tec.compile(MODEL, limits={"knots": 3})
        self.assertEqual(len(tec.compile(MODEL, limits={"nodes": 1000}).inputs), 1)


@unittest.skipUnless(OPENCL, "there is no OpenCL device")
class DeviceCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.module = os.path.join(cls.folder.name, "digits.tec")
        tec.compile(MODEL, cls.module, target="opencl -device=pocl")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tearDown(self):
        tec.device_cache(None)

    def load(self):
        """Runs the model, and gives its result and what loading it took: (from the cache, compiled)."""
        before = tec.device_cache_counts()
        result = tec.load(self.module)(images(8))["output"]
        after = tec.device_cache_counts()
        return result, (after.loaded - before.loaded, after.compiled - before.compiled)

    def test_is_kept_only_where_a_folder_is_named(self):
        cache = os.path.join(self.folder.name, "kept")
        expected, counts = self.load()
        self.assertEqual(counts, (0, 1))
        tec.device_cache(cache)
        self.assertEqual(self.load()[1], (0, 1))
        result, counts = self.load()
        self.assertEqual(counts, (1, 0))
        np.testing.assert_array_equal(result, expected)
        tec.device_cache(None)
        self.assertEqual(self.load()[1], (0, 1))

    def test_is_compiled_again_where_it_is_damaged(self):
        cache = os.path.join(self.folder.name, "damaged")
        tec.device_cache(cache)
        expected, _ = self.load()
        (entry,) = os.listdir(cache)
        with open(os.path.join(cache, entry), "r+b") as file:
            file.seek(100)
            file.write(b"x")
        result, counts = self.load()
        self.assertEqual(counts, (0, 1))
        np.testing.assert_array_equal(result, expected)
        self.assertEqual(self.load()[1], (1, 0))

    def test_is_bounded(self):
        cache = os.path.join(self.folder.name, "small")
        tec.device_cache(cache, 1000)
        self.load()
        self.assertEqual(self.load()[1], (0, 1))
        self.assertFalse(os.path.exists(cache) and os.listdir(cache))
        with self.assertRaisesRegex(tec.InvalidInput, "expected a number of bytes for device code, found -1"):
            tec.device_cache(cache, -1)

    def test_is_kept_for_what_the_compiler_loads_too(self):
        tec.device_cache(os.path.join(self.folder.name, "compiler"))
        before = tec.device_cache_counts()
        tec.compile(MODEL, target="opencl -device=pocl")
        tec.compile(MODEL, target="opencl -device=pocl")
        after = tec.device_cache_counts()
        self.assertEqual((after.loaded - before.loaded, after.compiled - before.compiled), (1, 1))

    def test_user_folder_is_that_of_the_commands(self):
        asked = dict(os.environ, XDG_CACHE_HOME="/x")
        script = "import tec; print(tec.user_cache_folder())"
        said = subprocess.run([sys.executable, "-c", script], env=asked, capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "/x/tec\n")
        asked.update(XDG_CACHE_HOME="", HOME="/nowhere")
        said = subprocess.run([sys.executable, "-c", script], env=asked, capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "/nowhere/.cache/tec\n")


class WithoutCompiler(unittest.TestCase):
    def test_says_what_to_install(self):
        code = "import tec\ntry: tec.compile('m.onnx')\nexcept tec.CompilerMissing as e: print(e)"
        environment = {**os.environ, "TEC_LIBRARY": "/nowhere/libtec.so"}
        said = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        ).stdout
        self.assertIn("cmake --install", said)
        self.assertIn("TEC_LIBRARY", said)


try:
    import torch
except ImportError:
    torch = None


@unittest.skipUnless(torch, "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    def test_goes_in_and_out_without_copies(self):
        model, x = tec.load(MODULE), torch.rand(3, 1, 8, 8)
        y = model.run({"input": x})["output"]
        t = torch.from_dlpack(y)
        self.assertEqual(t.data_ptr(), np.asarray(y).ctypes.data)
        np.testing.assert_array_equal(t.numpy(), model(x.numpy())["output"])
        out = torch.empty(3, 10)
        model.run({"input": x}, outputs={"output": out})
        self.assertTrue(torch.equal(out, t))


PROGRAM = """
type Tree = Leaf(f32[2]) | Node(Tree, Tree)
type List = Nil | Cons(f32[2], List)
param w: f32[2]

def sum(l: List, so_far: f32[2]) -> f32[2] {
  match l { Nil => so_far Cons(x, rest) => sum(rest, so_far + x * w) }
}

def main(t: Tree, l: List, pair: (f32[2], f32[2])) -> (Tree, f32[2]) {
  let (a, b) = pair
  match t {
    Leaf(x) => (t, sum(l, a))
    Node(x, y) => (Node(y, x), sum(l, b))
  }
}
"""


def write_safetensors(path, name, array):
    header = f'{{"{name}":{{"dtype":"F32","shape":{list(array.shape)},"data_offsets":[0,{array.nbytes}]}}}}'
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header.encode() + array.tobytes())


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "p.tecp")
        with open(path, "w") as f:
            f.write(PROGRAM)
        weights = os.path.join(self.folder.name, "p.safetensors")
        write_safetensors(weights, "w", np.array([2, 3], np.float32))
        self.file = os.path.join(self.folder.name, "p.tec")
        self.program = tec.compile_program(path, weights, self.file, profile=True)

    def tearDown(self):
        self.folder.cleanup()

    def call(self, n):
        leaf = [tec.Data("Leaf", np.full(2, k, np.float32)) for k in (n, n + 1)]
        rows = [np.array([k, 1], np.float32) for k in range(n)]
        pair = (np.zeros(2, np.float32), np.ones(2, np.float32))
        return self.program(tec.Data("Node", *leaf), tec.make_list(rows), pair=pair)

    def check(self, n):
        tree, total = self.call(n)
        self.assertEqual(tree.constructor, "Node")
        np.testing.assert_array_equal(tree[0][0], np.full(2, n + 1, np.float32))
        np.testing.assert_allclose(total, [1 + n * (n - 1), 1 + 3 * n], rtol=1e-3)

    def test_takes_and_gives_trees_lists_and_tuples(self):
        self.assertEqual([name for name, _ in self.program.inputs], ["t", "l", "pair"])
        self.assertIn("(f32[2], f32[2])", repr(self.program))
        for n in (0, 1, 5):
            self.check(n)
        self.assertEqual(list(tec.read_list(tec.make_list([1, 2, 3]))), [1, 2, 3])

    def test_a_program_of_operators_alone_is_a_program(self):
        path = os.path.join(self.folder.name, "plain.tecp")
        with open(path, "w") as f:
            f.write("def main(x: f32[n]) -> f32[n] { x * 2 }")
        np.testing.assert_array_equal(tec.compile_program(path)(np.ones(3, np.float32)), np.full(3, 2))
        with self.assertRaisesRegex(tec.Error, "is a program, not a model of operators alone"):
            tec.load(self.file)

    def test_a_long_list_needs_no_recursion(self):
        self.check(20000 if sys.getrecursionlimit() < 20000 else 2 * sys.getrecursionlimit())

    def test_many_threads_call_one_program(self):
        failures = []

        def work(n):
            try:
                for _ in range(20):
                    self.check(n)
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_names_what_does_not_fit(self):
        pair = (np.zeros(2, np.float32), np.ones(2, np.float32))
        with self.assertRaisesRegex(tec.InvalidInput, "field '1' of 'Leaf': expected f32.2., found f32.3."):
            self.program(tec.Data("Leaf", np.zeros(3, np.float32)), tec.Data("Nil"), pair)
        with self.assertRaisesRegex(tec.InvalidInput, "there is no constructor 'Branch'"):
            self.program(tec.Data("Branch"), tec.Data("Nil"), pair)
        with self.assertRaisesRegex(tec.InvalidInput, "expected the inputs t, l, pair; found 1 by position"):
            self.program(tec.Data("Nil"))
        with self.assertRaisesRegex(tec.InvalidInput, "limit of 3 steps"):
            leaf = tec.Data("Leaf", np.zeros(2, np.float32))
            tec.load_program(self.file, max_steps=3)(leaf, tec.Data("Nil"), pair)

    def test_profiles_kernels_and_instructions(self):
        self.call(4)
        groups = {row.group for row in self.program.profile()}
        self.assertLessEqual({"kernel", "memory", "control"}, groups)
        calls = {row.name: row.calls for row in self.program.profile()}
        self.assertEqual(calls["ret"], 2)
        with self.assertRaises(tec.InvalidInput):
            tec.load_program(self.file).profile()


if __name__ == "__main__":
    unittest.main()
