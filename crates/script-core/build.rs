//! Compiles Core's interpreter: one C++ file that includes the rest, and on x86-64 a second one
//! for the SHA instructions. Needs a C++17 compiler and nothing from the network.

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=bitcoin");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .include("src")
        .include("bitcoin")
        .include("bitcoin/secp256k1/include")
        .warnings(false)
        // Core relies on its assertions.
        .flag_if_supported("-UNDEBUG");
    let x86 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if x86 && !build.get_compiler().is_like_msvc() {
        build.define("USE_ASM", None).define("ENABLE_X86_SHANI", None);
        let objects = build
            .clone()
            .flag("-msse4.1")
            .flag("-msha")
            .file("src/sha_ni.cpp")
            .compile_intermediates();
        build.objects(objects);
    }
    build.file("src/core.cpp").compile("varve_script_core");
}
