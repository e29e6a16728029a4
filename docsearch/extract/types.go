package extract

import (
	"bytes"
	"path"
	"strings"
)

// The types of documents.
const (
	TypeText         = "text"
	TypeMarkdown     = "markdown"
	TypeHTML         = "html"
	TypeCode         = "code"
	TypePDF          = "pdf"
	TypeWord         = "docx"
	TypePresentation = "pptx"
	TypeSpreadsheet  = "xlsx"
	TypeOpenDocument = "odf" // text, presentation or spreadsheet
	TypeEPUB         = "epub"
	TypeRTF          = "rtf"
	TypeNotebook     = "ipynb"
)

// unsupported is the type of files that are not read.
const unsupported = ""

// Wants reports whether a file of that name may be indexed. A file for which it returns
// false need not be read: it is of a format without text, or of one that is not
// supported.
func (*Extractor) Wants(name string) bool { return typeByName(name) != unsupported }

func typeOf(name string, data []byte) string {
	t := typeByName(name)
	if t == TypeText && bytes.HasPrefix(data, []byte("%PDF-")) {
		return TypePDF
	}
	return t
}

func typeByName(name string) string {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if t, ok := types[strings.TrimPrefix(path.Ext(base), ".")]; ok {
		return t
	}
	return TypeText
}

// types has the type of each extension that is not plain text.
var types = typesOf(map[string]string{
	TypeMarkdown:     "md markdown mdown mkd mdx qmd rmd",
	TypeHTML:         "html htm xhtml",
	TypePDF:          "pdf",
	TypeWord:         "docx docm dotx dotm",
	TypePresentation: "pptx pptm ppsx ppsm potx potm",
	TypeSpreadsheet:  "xlsx xlsm xltx xltm",
	TypeOpenDocument: "odt ott odp otp ods ots",
	TypeEPUB:         "epub",
	TypeRTF:          "rtf",
	TypeNotebook:     "ipynb",
	TypeCode: `
		ada adb ads asm awk bash bat bzl c cc cjs clj cljs cmake cpp cs css cu cxx d dart
		el elm erl ex exs f f90 fish fs fsx gleam go gradle groovy h hcl hh hpp hrl hs hxx
		idl inc java jl js jsx kt kts less lisp lua m mjs ml mli mm nim nix pas php pl pm
		proto ps1 py pyi r rb rkt rs s sass scala scm scss sh sol sql svelte swift tcl tf
		thrift ts tsx v vala vb vhd vhdl vue wat zig zsh`,
	unsupported: `
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
		doc dot xls xlsb ppt odg pages numbers key mobi azw azw3 djvu xps one pst msg
		keystore jks p12 pfx der gpg pcap pcapng swp swo dwg blend fbx stl glb`,
})

func typesOf(extensions map[string]string) map[string]string {
	all := make(map[string]string)
	for t, list := range extensions {
		for ext := range strings.FieldsSeq(list) {
			all[ext] = t
		}
	}
	return all
}
