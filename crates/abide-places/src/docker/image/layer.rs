//! The last layer of an image: what is added to its source.

use abide_model::Choice as _;
use abide_model::container::{ContainerRecipe, ImagePackage};

pub(super) const SCRIPT: &str = include_str!("layer.sh");

/// The Dockerfile of the layer on top of `from`.
pub(super) fn dockerfile(
    from: &str,
    labels: &[(&str, String)],
    recipe: &ContainerRecipe,
    packages: &[ImagePackage],
) -> String {
    // The labels come first: a layer that is left when the next one fails is known as ours.
    let labels = labels.iter().map(|(name, value)| format!(" {name}={}", quoted(value)));
    let mut text = format!("FROM {from}\nLABEL{}\n", labels.collect::<String>());
    if recipe.uid != 0 || !packages.is_empty() {
        let mut words = vec!["/bin/sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), "layer".to_owned()];
        words.extend([recipe.uid.to_string(), recipe.gid.to_string()]);
        for package in packages {
            let version = package.version.clone().unwrap_or_default();
            words.extend([
                package.manager.as_str().to_owned(),
                package.command.clone(),
                package.name.clone(),
                version,
            ]);
        }
        let words: serde_json::Value = words.into();
        text.push_str(&format!("USER 0\nRUN {words}\n"));
    }
    text
}

/// `value` as a Dockerfile takes it for what it is.
fn quoted(value: &str) -> String {
    let escaped =
        value.chars().flat_map(|c| matches!(c, '"' | '\\' | '$').then_some('\\').into_iter().chain([c]));
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use abide_model::Extra;
    use abide_model::container::PackageManager;

    use super::*;

    #[test]
    fn a_layer_is_labels_and_one_script_that_gets_everything_as_arguments() {
        let package = ImagePackage {
            command: "claude".to_owned(),
            manager: PackageManager::Npm,
            name: "@a/b".to_owned(),
            version: Some("1.2".to_owned()),
            extra: Extra::new(),
        };
        let recipe = ContainerRecipe { uid: 1000, gid: 1001, ..ContainerRecipe::default() };
        let labels = [("abide.home", "/h/$x\"".to_owned()), ("abide.recipe", "1".to_owned())];
        let text = dockerfile("debian:13", &labels, &recipe, &[package]);
        let lines: Vec<&str> = text.lines().collect();
        let label = "LABEL abide.home=\"/h/\\$x\\\"\" abide.recipe=\"1\"";
        assert_eq!(lines[..3], ["FROM debian:13", label, "USER 0"]);
        let words: Vec<String> = serde_json::from_str(lines[3].strip_prefix("RUN ").unwrap()).unwrap();
        assert_eq!(words[3..], ["layer", "1000", "1001", "npm", "claude", "@a/b", "1.2"]);
        assert_eq!(lines.len(), 4);
        assert_eq!(
            dockerfile("a", &labels[1..], &ContainerRecipe::default(), &[]),
            "FROM a\nLABEL abide.recipe=\"1\"\n"
        );
    }
}
