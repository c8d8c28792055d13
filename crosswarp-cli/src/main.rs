//! The `crosswarp` command.
mod args;
mod boundary;
mod expression;
mod general;
mod history;
mod image_input;
mod npy;
mod picture;
mod plot;
mod problem;
mod problem_file;
mod staged;
mod ticks;
mod topology;
mod vti;
fn main() {}
#[cfg(test)]
mod demo {
    #[test]
    fn demo() {
        use crate::*;
        let norms: Vec<f64> = (0..57)
            .map(|k| 0.0027 / (1.0 + k as f64).powf(0.85))
            .collect();
        plot::write_svg(
            staged::StagedFile::create("/tmp/cli-plot.svg".as_ref()).unwrap(),
            &plot::PlotTexts {
                title: "Laplace 1-D, 4,194,304 points",
                norm: "rms change per sweep",
            },
            &norms,
            1e-4,
        )
        .unwrap();
        let d = npy::NpyMap::open("../examples/jacksboro/jacksboro_dem.npy".as_ref()).unwrap();
        let k: &'static npy::NpyMap = Box::leak(Box::new(
            npy::NpyMap::open("../examples/jacksboro/jacksboro_known.npy".as_ref()).unwrap(),
        ));
        let f = staged::StagedFile::create("/tmp/cli-fill.png".as_ref()).unwrap();
        let m: picture::MaskRows = std::sync::Arc::new(move |row, out: &mut [u8]| {
            out.copy_from_slice(&k.elements::<u8>().unwrap()[row * 403..(row + 1) * 403])
        });
        let mut p = picture::MapPicture::new(
            f,
            "Jacksboro fault: voids filled".into(),
            picture::Colours::Terrain,
            (403, 344),
            Some(m),
        );
        p.put(d.elements::<f32>().unwrap());
        p.finish().unwrap();
        let f = staged::StagedFile::create("/tmp/cli-map.png".as_ref()).unwrap();
        let mut p = picture::MapPicture::new(
            f,
            "Laplace, 512 x 512, 1000 sweeps".into(),
            picture::Colours::Viridis,
            (512, 512),
            None,
        );
        let v: Vec<f64> = (0..512 * 512)
            .map(|k| {
                let (x, y) = ((k % 512) as f64 / 511., (k / 512) as f64 / 511.);
                (x * 3.14159).sin() * (2. * y * 3.14159).cos() * (1. - y)
            })
            .collect();
        p.put(&v);
        p.finish().unwrap();
        let f = staged::StagedFile::create("/tmp/cli-curve.png".as_ref()).unwrap();
        let mut p = picture::CurvePicture::new(f, "Laplace, 40 points".into(), 40);
        let v: Vec<f64> = (0..40).map(|k| (k as f64 / 5.).sin()).collect();
        p.put(&v);
        p.finish().unwrap();
    }
}
