//! The kernels behind the host's functions compile, and the header does where NVRTC reads it. Without NVRTC the tests say that
//! they were skipped.

use crosswarp_cuda::internal::compile_all;
use crosswarp_cuda::{Arch, Cache, Nvrtc, ON_STREAM, Options, Source, compile, skip};
use crosswarp_nvshmem::installation::files;
use crosswarp_nvshmem::kernels::units;

#[test]
fn every_unit_compiles() {
    if let Err(reason) = Nvrtc::get() {
        return skip::skip_gpu("every_unit_compiles", 1, reason);
    }
    let texts = units();
    let own = texts.iter().map(|(name, text)| Source::new(name, text));
    // For several hosts those of words, and of one type: they are of one text, and take a minute each.
    let routed = texts
        .iter()
        .filter(|(name, _)| ["words.cu", "reduce_half.cu"].contains(&name.as_str()));
    let routed = routed.map(|(name, text)| {
        let options = Options::new().define("CROSSWARP_ROUTED", 1);
        (Source::new(name, text), options)
    });
    assert_eq!(routed.clone().count(), 2);
    let units: Vec<_> = own
        .chain(ON_STREAM.iter().copied())
        .map(|source| (source, Options::new()))
        .chain(routed)
        .collect();
    let cubins = compile_all(&Cache::of_user(), &units, &[Arch::new(9, 0)], &|_, _| ());
    let cubins = cubins.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cubins.len(), units.len());
}

/// The installed file with what it includes of other installed ones, as NVRTC would read it with the folder's path.
fn whole(path: &str, read: &mut Vec<String>) -> String {
    let file = files().into_iter().find(|file| file.path == path);
    let text = String::from_utf8(file.unwrap_or_else(|| panic!("no {path}")).content).unwrap();
    read.push(path.to_owned());
    let lines = text.lines().map(|line| {
        let inner = line.strip_prefix("#include \"");
        let inner = inner.and_then(|line| line.strip_suffix('"'));
        match inner.map(|inner| format!("include/{inner}")) {
            Some(inner) if read.contains(&inner) => String::new(),
            Some(inner) => whole(&inner, read),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

const KERNEL: &str = r#"
using namespace nvshmemx;
extern "C" __global__ void kernel(float *x, unsigned long *signal, int n) {
    nvshmem_float_p(x, 1.f, 0);
    nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, x, x, n);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    auto shape = make_shape(ConstInt<4>(), n);
    auto layout = make_layout(shape, make_stride(n, ConstInt<1>()));
    Tensor from(x, layout), to(x + 4 * n, layout);
    tile_put_block<decltype(from), decltype(to), decltype(shape), tile_algo_t::PEER_PUSH_NBI>(from, to, shape, shape, 0, 0);
}
"#;

#[test]
fn nvrtc_compiles_the_header() {
    if let Err(reason) = Nvrtc::get() {
        return skip::skip_gpu("nvrtc_compiles_the_header", 1, reason);
    }
    let text = whole("include/crosswarp_nvshmem.h", &mut Vec::new()) + KERNEL;
    let source = Source::new("program.cu", &text);
    compile(&source, Arch::new(9, 0), &Options::new()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn bounds_of_a_tile_that_are_not_understood_are_refused() {
    if let Err(reason) = Nvrtc::get() {
        return skip::skip_gpu(
            "bounds_of_a_tile_that_are_not_understood_are_refused",
            1,
            reason,
        );
    }
    let header = whole("include/crosswarp_nvshmem.h", &mut Vec::new());
    let compiled = |bounds: &str| {
        let text = format!(
            "{header}{bounds}\nusing namespace nvshmemx;\n\
             using tile = Tensor<float, Layout<shape<int, int>, stride<int, int>>>;\n\
             extern \"C\" __global__ void kernel(tile from, tile to, bounds at) {{\n    \
             tile_put<tile, tile, bounds, tile_algo_t::PEER_PUSH_NBI>(from, to, at, at, 0, 0);\n}}\n"
        );
        compile(
            &Source::new("program.cu", &text),
            Arch::new(9, 0),
            &Options::new(),
        )
        .map(|_| ())
        .map_err(|error| error.to_string())
    };
    assert_eq!(compiled("struct bounds {};"), Ok(()));
    assert_eq!(
        compiled("using bounds = nvshmemx::shape<long, int>;"),
        Ok(())
    );
    for other in [
        "struct bounds { int x, y; };",
        "using bounds = int;",
        "using bounds = nvshmemx::shape<int>;",
    ] {
        let error = compiled(other).unwrap_err();
        assert!(
            error.contains("start_coord and boundary are"),
            "{other}: {error}"
        );
    }
}
