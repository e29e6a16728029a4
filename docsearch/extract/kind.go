package extract

import (
	"bytes"
	"path"
	"strings"
)

// kind is how a file is read.
type kind int

const (
	kindText kind = iota
	kindMarkdown
	kindHTML
	kindCode
	kindPDF
	kindDOCX
	kindIgnored
)

// Wants reports whether a file of that name may be indexed. A file for which it returns
// false need not be read: it is of a format without text, or of one that is not
// supported.
func (*Extractor) Wants(name string) bool { return kindByName(name) != kindIgnored }

func kindOf(name string, data []byte) kind {
	k := kindByName(name)
	if k == kindText && bytes.HasPrefix(data, []byte("%PDF-")) {
		return kindPDF
	}
	return k
}

func kindByName(name string) kind {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	return kinds[strings.TrimPrefix(path.Ext(base), ".")] // kindText if unknown
}

// kinds has the kind of each extension that is not plain text.
var kinds = kindsOf(map[kind]string{
	kindMarkdown: "md markdown mdown mkd mdx qmd rmd",
	kindHTML:     "html htm xhtml",
	kindPDF:      "pdf",
	kindDOCX:     "docx docm dotx dotm",
	kindCode: `
		ada adb ads asm awk bash bat bzl c cc cjs clj cljs cmake cpp cs css cu cxx d dart
		el elm erl ex exs f f90 fish fs fsx gleam go gradle groovy h hcl hh hpp hrl hs hxx
		idl inc java jl js jsx kt kts less lisp lua m mjs ml mli mm nim nix pas php pl pm
		proto ps1 py pyi r rb rkt rs s sass scala scm scss sh sol sql svelte swift tcl tf
		thrift ts tsx v vala vb vhd vhdl vue wat zig zsh`,
	kindIgnored: `
		png jpg jpeg jpe gif bmp tif tiff webp avif heic heif ico icns psd xcf svg svgz eps
		ai raw cr2 nef dng exr hdr tga
		mp3 wav flac ogg oga opus m4a aac wma aiff mid midi
		mp4 m4v mkv mov avi webm wmv flv mpg mpeg 3gp ogv
		zip gz tgz bz2 tbz xz txz zst tzst lz lz4 lzma 7z rar tar jar war ear apk ipa aar
		whl egg gem crate nupkg deb rpm msi dmg iso img vhd vmdk qcow2 cab cpio ar
		exe dll so dylib a o obj lib ko elf class pyc pyo pyd wasm bin com sys node
		ttf otf ttc woff woff2 eot pfb
		db sqlite sqlite3 mdb accdb db-wal db-shm wal parquet arrow feather orc avro h5
		hdf5 npy npz pkl pickle pt pth onnx safetensors gguf tflite pb
		doc dot xls xlsx xlsm xlsb ppt pptx pptm odt ods odp odg pages numbers key epub
		mobi azw azw3 djvu xps one pst msg
		keystore jks p12 pfx der gpg pcap pcapng swp swo dwg blend fbx stl glb`,
})

func kindsOf(extensions map[kind]string) map[string]kind {
	all := make(map[string]kind)
	for k, list := range extensions {
		for ext := range strings.FieldsSeq(list) {
			all[ext] = k
		}
	}
	return all
}
