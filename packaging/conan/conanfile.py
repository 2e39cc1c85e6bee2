"""Conan 2: `conan create packaging/conan` from a tree or an archive of `make dist`."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class TemporalSlab(ConanFile):
    name = "temporal-slab"
    description = "Memory allocator that groups objects by the phase of the program they belong to"
    license = "MIT"
    topics = ("allocator", "arena", "memory", "region")
    package_type = "library"
    languages = "C"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        """The version is written once, in the public header."""
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "slab_alloc.h"))
        lines = [line.split() for line in text.splitlines() if line.startswith("#define TSLAB_VERSION_")]
        self.version = ".".join(words[2] for words in lines)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "common/*", "include/*", "preload/*", "share/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("temporal-slab runs on 64-bit Linux only")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables["TSLAB_BUILD_PRELOAD"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install(component="library")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.libs = ["temporal_slab"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:
            self.cpp_info.defines = ["SLAB_STATIC"]
        self.cpp_info.set_property("cmake_file_name", "temporal-slab")
        self.cpp_info.set_property("cmake_target_name", "temporal_slab::temporal_slab")
        self.cpp_info.set_property("pkg_config_name", "temporal-slab")
