"""Errors and warnings that have nothing to do with autograd, as (class, message).

Each was produced by running code on torch 2.13, NumPy or Python (those about CUDA are from reports of
users), as `plain_message` gives it. The catalogue matches none of them.
"""

ORDINARY: tuple[tuple[str, str], ...] = (
    # Shapes
    ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (3x5 and 4x2)"),
    (
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    ("RuntimeError", "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    ("RuntimeError", "shape '[2, 3]' is invalid for input of size 5"),
    (
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    (
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor "
        "number 1 in the list.",
    ),
    ("RuntimeError", "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    ("ValueError", "torch.cat(): expected a non-empty list of Tensors"),
    ("IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (
        "RuntimeError",
        "Given groups=1, weight of size [1, 3, 3, 3], expected input[1, 1, 5, 5] to have 3 channels, but "
        "got 1 channels instead",
    ),
    ("RuntimeError", "Expected hidden[0] size (1, 2, 4), got [1, 1, 4]"),
    (
        "RuntimeError",
        "einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
    ),
    (
        "RuntimeError",
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension "
        "0.  Target sizes: [2].  Tensor sizes: [3]",
    ),
    ("RuntimeError", "Trying to create tensor with negative dimension -1: [-1]"),
    ("AssertionError", "embed_dim must be divisible by num_heads"),
    ("ValueError", "Expected more than 1 value per channel when training, got input size torch.Size([1, 2])"),
    # Indices and targets
    ("IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    ("IndexError", "index out of range in self"),
    ("IndexError", "Target 3 is out of bounds."),
    ("ValueError", "Expected input batch_size (2) to match target batch_size (3)."),
    ("RuntimeError", "expected target dtype to be Long or Byte, but got Float"),
    ("RuntimeError", "all elements of input should be between 0 and 1"),
    (
        "ValueError",
        "Using a target size (torch.Size([2, 1])) that is different to the input size (torch.Size([2])) is "
        "deprecated. Please ensure they have the same size.",
    ),
    ("RuntimeError", "index 4 is out of bounds for dimension 0 with size 3"),
    ("RuntimeError", "index 5 is out of bounds for dimension 0 with size 2"),
    (
        "IndexError",
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        "(got float)",
    ),
    ("IndexError", "list index out of range"),
    ("KeyError", "'grad'"),
    # Types
    ("RuntimeError", "mat1 and mat2 must have the same dtype, but got Double and Float"),
    ("RuntimeError", "Input type (double) and bias type (float) should be the same"),
    (
        "RuntimeError",
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
        "but got torch.FloatTensor instead (while checking arguments for embedding)",
    ),
    ("RuntimeError", "result type Float can't be cast to the desired output type Long"),
    (
        "RuntimeError",
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
        "dtype. Got: Long",
    ),
    ("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous"),
    ("TypeError", "only integer tensors of a single element can be converted to an index"),
    ("TypeError", "linear(): argument 'input' (position 1) must be Tensor, not numpy.ndarray"),
    ("ValueError", "too many dimensions 'str'"),
    (
        "TypeError",
        "can't convert np.ndarray of type numpy.object_. The only supported types are: float64, float32, "
        "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and "
        "bool.",
    ),
    ("TypeError", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    ("AttributeError", "'Tensor' object has no attribute 'nothing'"),
    (
        "RuntimeError",
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.",
    ),
    ("RuntimeError", "dot : expected both vectors to have same dtype, but found Float and Double"),
    ("TypeError", "Got unsupported ScalarType BFloat16"),
    ("TypeError", "len() of a 0-d tensor"),
    ("TypeError", "iteration over a 0-d tensor"),
    (
        "TypeError",
        "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64",
    ),
    # Devices and memory (the CUDA ones as reported by users of torch 2)
    ("AssertionError", "Torch not compiled with CUDA enabled"),
    ("RuntimeError", "Tensor on device cpu is not on the expected device meta!"),
    ("NotImplementedError", "Cannot copy out of meta tensor; no data!"),
    (
        "RuntimeError",
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
        "tried to allocate 4000000000000000 bytes. Error code 12 (Cannot allocate memory)",
    ),
    (
        "RuntimeError",
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, "
        "lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: gpu",
    ),
    ("RuntimeError", "Trying to resize storage that is not resizable"),
    (
        "OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which "
        "11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the "
        "allocated memory 22.90 GiB is allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    ),
    (
        "RuntimeError",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        "(when checking argument for argument mat2 in method wrapper_CUDA_mm)",
    ),
    (
        "RuntimeError",
        "CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
        "below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    ),
    # Modules, files and optimizers
    (
        "RuntimeError",
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias".',
    ),
    (
        "RuntimeError",
        "Error(s) in loading state_dict for Linear:\n"
        "\tsize mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the "
        "shape in current model is torch.Size([1, 2]).",
    ),
    (
        "RuntimeError",
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "weight", "bias".\n'
        '\tUnexpected key(s) in state_dict: "module.weight", "module.bias".',
    ),
    ("NotImplementedError", 'Module [Module] is missing the required "forward" function'),
    ("TypeError", "Linear.forward() missing 1 required positional argument: 'input'"),
    ("AttributeError", "'Linear' object has no attribute 'no_such_layer'"),
    ("KeyError", "\"attribute 'weight' already exists\""),
    ("TypeError", "int is not a Module subclass"),
    ("TypeError", "cannot assign 'str' as parameter 'weight' (torch.nn.Parameter or None expected)"),
    ("ValueError", "optimizer got an empty parameter list"),
    ("ValueError", "Invalid learning rate: -1.0"),
    (
        "TypeError",
        "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
        "torch.FloatTensor",
    ),
    ("ValueError", "some parameters appear in more than one parameter group"),
    (
        "ValueError",
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ),
    (
        "UnpicklingError",
        "Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` "
        "argument in `torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` set "
        "to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you "
        "got the file from a trusted source.\n"
        "Please file an issue with the following so that we can make `weights_only=True` compatible with "
        "your use case: WeightsUnpickler error:\n"
        "\n"
        "Unsupported operand 110\n"
        "\n"
        "Check the documentation of torch.load to learn more about types accepted by default with "
        "weights_only https://pytorch.org/docs/stable/generated/torch.load.html.",
    ),
    (
        "UnpicklingError",
        "Weights only load failed. This file can still be loaded, to do so you have two options, do those "
        "steps only if you trust the source of the checkpoint.\n"
        "\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` "
        "from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely "
        "succeed, but it can result in arbitrary code execution. Do it only if you got the file from a "
        "trusted source.\n"
        "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the "
        "following error message.\n"
        "\tWeightsUnpickler error: Unsupported global: GLOBAL __main__.Thing was not an allowed global by "
        "default. Please use `torch.serialization.add_safe_globals([__main__.Thing])` or the "
        "`torch.serialization.safe_globals([__main__.Thing])` context manager to allowlist this global if "
        "you trust this class/function.\n"
        "\n"
        "Check the documentation of torch.load to learn more about types accepted by default with "
        "weights_only https://pytorch.org/docs/stable/generated/torch.load.html.",
    ),
    ("FileNotFoundError", "[Errno 2] No such file or directory: 'no_such_file.pt'"),
    ("AttributeError", "Can't pickle local object '<lambda>.<locals>.<lambda>'"),
    ("TypeError", "cannot pickle 'generator' object"),
    # Data loading
    ("RuntimeError", "stack expects each tensor to be equal size, but got [1] at entry 0 and [2] at entry 1"),
    (
        "TypeError",
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class "
        "'object'>",
    ),
    (
        "ValueError",
        "Caught ValueError in DataLoader worker process 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "worker.py", line 374, in _worker_loop\n'
        "    data = fetcher.fetch(index)  # type: ignore[possibly-undefined]\n"
        "           ^^^^^^^^^^^^^^^^^^^^\n"
        '  File "fetch.py", line 54, in fetch\n'
        "    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        '  File "fetch.py", line 54, in <listcomp>\n'
        "    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
        "            ~~~~~~~~~~~~^^^^^\n"
        '  File "train.py", line 117, in __getitem__\n'
        '    def __getitem__(self, i): raise ValueError("no such picture")\n'
        "                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "ValueError: no such picture",
    ),
    ("RuntimeError", "DataLoader worker (pid(s) 14725) exited unexpectedly"),
    ("ValueError", "sampler option is mutually exclusive with shuffle"),
    ("ValueError", "num_samples should be a positive integer value, but got num_samples=0"),
    ("AssertionError", "Size mismatch between tensors"),
    # Numbers, NumPy and compilation
    (
        "_LinAlgError",
        "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the "
        "input matrix is singular.",
    ),
    (
        "_LinAlgError",
        "linalg.cholesky: The factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order 1 is not positive-definite).",
    ),
    (
        "AssertionError",
        "Tensor-likes are not close!\n"
        "\n"
        "Mismatched elements: 2 / 2 (100.0%)\n"
        "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: inf at index (0,) (up to 1.3e-06 allowed)",
    ),
    ("ValueError", "operands could not be broadcast together with shapes (2,) (3,)"),
    (
        "ValueError",
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        "(n?,k),(k,m?)->(n?,m?) (size 2 is different from 3)",
    ),
    (
        "ValueError",
        "setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 "
        "dimensions. The detected shape was (2,) + inhomogeneous part.",
    ),
    ("LinAlgError", "Singular matrix"),
    ("IndexError", "index 5 is out of bounds for axis 0 with size 3"),
    (
        "Unsupported",
        "Data-dependent branching\n"
        "  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does "
        "not support tracing dynamic control flow.\n"
        "\n"
        "      The branch condition involves a tensor computed as follows:\n"
        '        # File "train.py", line 141, in f, code: return x if x.sum() > 0 else -x\n'
        "        gt = gt(sum_1, 0)\n"
        "\n"
        "  Hint: For the common pattern `if tensor_cond: x = transform(x)` (e.g. clamping inf/nan values), "
        "consider making the code branchless by always applying the transform. Operations like "
        "torch.clamp, torch.nan_to_num, and torch.where are typically no-ops on well-behaved inputs and "
        "compile without graph breaks.\n"
        "  Hint: This graph break is fundamental - it is unlikely that Dynamo will ever be able to trace "
        "through your code. Consider finding a workaround.\n"
        "  Hint: Use `torch.cond` to express dynamic control flow.\n"
        "\n"
        "  Developer debug context: attempted to jump with TensorVariable()\n"
        "\n"
        " For more details about this graph break, please visit: "
        "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html\n"
        "\n"
        "from user code:\n"
        '   File "train.py", line 141, in f\n'
        "    return x if x.sum() > 0 else -x\n"
        "                ^^^^^^^^^^^^^^^^^^^\n"
        "\n"
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you're "
        'reporting a bug to PyTorch). For even more developer context, set TORCH_LOGS="+dynamo"',
    ),
    ("AttributeError", "'_OpNamespace' 'nothing' object has no attribute 'here'"),
    ("RuntimeError", "cannot sample n_sample > prob_dist.size(-1) samples without replacement"),
    # Python
    ("ModuleNotFoundError", "No module named 'no_such_package'"),
    ("ImportError", "cannot import name 'no_such_name' from 'torch' (__init__.py)"),
    ("NameError", "name 'no_such_variable' is not defined"),
    ("TypeError", "<lambda>.<locals>.<lambda>() missing 1 required positional argument: 'x'"),
    ("ZeroDivisionError", "division by zero"),
    ("AttributeError", "'NoneType' object has no attribute 'sum'"),
    ("ValueError", "invalid literal for int() with base 10: 'nan'"),
    ("FileNotFoundError", "[Errno 2] No such file or directory: 'no_such_file.txt'"),
    ("RecursionError", "maximum recursion depth exceeded"),
    # Warnings
    (
        "UserWarning",
        "Using a target size (torch.Size([2])) that is different to the input size (torch.Size([2, 1])). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same "
        "size.",
    ),
    (
        "UserWarning",
        "Implicit dimension choice for softmax has been deprecated. Change the call to include dim=X as an "
        "argument.",
    ),
    (
        "UserWarning",
        "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
        "means writing to this tensor will result in undefined behavior. You may want to copy the array to "
        "protect its data or make it writable before converting it to a tensor. This type of warning will "
        "be suppressed for the rest of this program.",
    ),
    (
        "UserWarning",
        "This DataLoader will create 64 worker processes in total. Our suggested max number of worker in "
        "current system is 2, which is smaller than what this DataLoader is going to create. Please be "
        "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the "
        "worker number to avoid potential slowness/freeze if necessary.",
    ),
    (
        "UserWarning",
        "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
        "num_layers greater than 1, but got dropout=0.5 and num_layers=1",
    ),
    (
        "UserWarning",
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
        "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
        "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
    ),
    (
        "UserWarning",
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
        "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if epoch "
        "is different from None, the closed form is used instead of the new chainable form, where "
        "available. Please open an issue if you are unable to replicate your use case: "
        "https://github.com/pytorch/pytorch/issues/new/choose.",
    ),
)
